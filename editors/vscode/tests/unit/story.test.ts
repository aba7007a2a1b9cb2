import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event } from "../../src/model/protocol.ts";
import { Story } from "../../src/model/story.ts";
import { endSentence } from "../../src/model/words.ts";
import {
  answered,
  asked,
  finished,
  made,
  PERCENT,
  QUOTE,
  requested,
  review,
  started,
  story,
  turn,
  woken,
} from "./events.ts";

test("an event that was seen before changes nothing", () => {
  const told = story(started, woken(QUOTE), turn(QUOTE));
  assert.equal(told.take(2, turn(QUOTE)), false);
  assert.equal(told.used.calls, 1);
  assert.equal(told.take(3, turn(QUOTE)), true);
  assert.equal(told.used.calls, 2);
});

test("the ledger adds up turns, and the end of the run has the last word", () => {
  const told = story(started, woken(QUOTE), turn(QUOTE, 0.25), turn(QUOTE, 0.5));
  assert.deepEqual(told.used, { calls: 2, tokens: 2000, dollars: 0.75 });
  told.take(9, finished);
  assert.deepEqual(told.used, { calls: 9, tokens: 16_966, dollars: 0.0123, unpriced: 0 });
});

test("a proposal goes from checking over waiting to applied and undone", () => {
  const told = story(started, woken(QUOTE), made(1, QUOTE));
  const state = () => told.proposals.get(1)?.state;
  assert.equal(state(), "checking");
  assert.equal(told.agents.get(QUOTE)?.doing, "proposal #1 is checked");
  told.take(10, review(1, QUOTE));
  assert.equal(state(), "waiting");
  assert.equal(told.agents.get(QUOTE)?.state, "waiting");
  assert.deepEqual(
    told.waiting.map(({ number }) => number),
    [1],
  );
  told.take(11, { event: "proposal_reviewed", proposal: 1, by: "user", verdict: { verdict: "accept" } });
  assert.equal(state(), "accepted");
  told.take(12, { event: "proposal_applied", proposal: 1, symbols: [QUOTE], diff: "" });
  assert.equal(state(), "applied");
  told.take(13, { event: "proposal_undone", proposal: 1 });
  assert.equal(state(), "undone");
});

test("a rejected proposal keeps the reason, and its revision names it", () => {
  const verdict = { verdict: "reject", reason: "say why" } as const;
  const rejected: Event = { event: "proposal_reviewed", proposal: 1, by: "user", verdict };
  const told = story(started, woken(QUOTE), made(1, QUOTE), review(1, QUOTE), rejected, made(2, QUOTE, 1));
  assert.equal(told.proposals.get(1)?.state, "rejected");
  assert.equal(told.proposals.get(1)?.note, "say why");
  assert.equal(told.proposals.get(2)?.revises, 1);
});

test("one answer holds for a whole set", () => {
  const told = story(started, woken(QUOTE), woken(PERCENT), made(1, QUOTE), made(2, PERCENT), review(1, QUOTE, [2]));
  assert.deepEqual(
    told.waiting.map(({ number }) => number),
    [1, 2],
  );
  assert.deepEqual(told.proposals.get(2)?.with, [1]);
  told.take(10, { event: "proposal_reviewed", proposal: 1, by: "user", verdict: { verdict: "accept" } });
  assert.deepEqual(told.waiting, []);
  assert.equal(told.proposals.get(2)?.state, "accepted");
});

test("a refused proposal is the one that was being checked", () => {
  const refused: Event = { event: "proposal_refused", agent: { agent: QUOTE }, why: "it loses a comment" };
  const told = story(started, woken(QUOTE), refused, made(1, QUOTE), refused);
  assert.equal(told.proposals.get(1)?.state, "refused");
  assert.equal(told.proposals.get(1)?.note, "it loses a comment");
});

test("questions wait for their answer, requests for the change", () => {
  const told = story(started, woken(QUOTE), asked, requested);
  assert.deepEqual(
    told.messages.map(({ open }) => open),
    [true, true],
  );
  told.take(10, answered);
  assert.deepEqual(
    told.messages.map(({ open }) => open),
    [false, true],
  );
  assert.equal(told.messages[0]?.answer, "Yes.");
  told.take(11, made(1, PERCENT));
  told.take(12, { event: "proposal_applied", proposal: 1, symbols: [PERCENT], diff: "" });
  assert.deepEqual(
    told.messages.map(({ open }) => open),
    [false, false],
  );
});

test("an intent waits until it is answered", () => {
  const told = story(started, woken(QUOTE));
  told.intend({ run: "r1", symbol: QUOTE, intent: "add a parameter", reason: "needed" });
  assert.equal(told.intents.size, 1);
  assert.equal(told.agents.get(QUOTE)?.state, "waiting");
  told.take(9, { event: "intent_reviewed", agent: { agent: QUOTE }, by: "user", verdict: { verdict: "accept" } });
  assert.equal(told.intents.size, 0);
  assert.equal(told.agents.get(QUOTE)?.state, "working");
});

test("an intent that overtakes its events still waits", () => {
  const told = story(started);
  told.intend({ run: "r1", symbol: QUOTE, intent: "add a parameter", reason: "needed" });
  told.take(5, woken(QUOTE));
  told.take(6, { event: "turn_started", agent: { agent: QUOTE }, turn: 1 });
  assert.equal(told.agents.get(QUOTE)?.state, "waiting");
  assert.equal(told.agents.get(QUOTE)?.doing, "waits for leave to write");
});

test("nothing waits or works after the end", () => {
  const told = story(started, woken(QUOTE), asked, made(1, QUOTE), review(1, QUOTE), finished);
  assert.equal(told.running, false);
  assert.deepEqual([told.waiting.length, told.working.length], [0, 0]);
  assert.equal(told.proposals.get(1)?.state, "dropped");
  assert.equal(told.messages[0]?.open, false);
});

test("an event of a newer server passes by", () => {
  const told = story(started);
  assert.equal(told.take(5, { event: "something_new" } as unknown as Event), true);
  assert.equal(told.running, true);
});

test("scout and proxy are no agents of the tree", () => {
  const told = story(started, { event: "turn_started", agent: "scout", turn: 1 });
  assert.equal(told.agents.size, 0);
});

test("what a run left waiting outlives its server", () => {
  const told = story(started, woken(QUOTE), made(1, QUOTE), review(1, QUOTE), finished);
  assert.equal(told.proposals.get(1)?.state, "dropped");
  told.settle([{ proposal: 1, state: "waiting" }]);
  told.interrupt();
  assert.deepEqual(
    told.waiting.map(({ number }) => number),
    [1],
  );
  assert.match(endSentence(told), /^Interrupted/);
  const cut = story(started, woken(QUOTE), asked);
  cut.interrupt();
  assert.equal(cut.running, false);
  assert.equal(cut.agents.get(QUOTE)?.doing, "stopped with the server");
  assert.equal(cut.messages[0]?.open, false);
});

test("an agent that only answers is not at work, and one that waits goes on waiting", () => {
  const thinks = (symbol: string): Event => ({ event: "turn_started", agent: { agent: symbol }, turn: 1 });
  const told = story(started, woken(QUOTE), asked, thinks(PERCENT), answered);
  assert.deepEqual(
    told.working.map(({ key }) => key),
    [QUOTE],
  );
  assert.equal(told.agents.has(PERCENT), false);
  const waiting = story(started, woken(QUOTE), made(1, QUOTE), review(1, QUOTE), thinks(QUOTE));
  assert.equal(waiting.agents.get(QUOTE)?.state, "waiting");
});

test("a rejected proposal of an interrupted run sets nobody to work", () => {
  const told = story(started, woken(QUOTE), made(1, QUOTE), review(1, QUOTE));
  told.interrupt();
  const verdict = { verdict: "reject", reason: "no" } as const;
  told.take(10, { event: "proposal_reviewed", proposal: 1, by: "user", verdict });
  assert.equal(told.proposals.get(1)?.state, "rejected");
  assert.deepEqual(told.working, []);
  assert.equal(told.agents.get(QUOTE)?.doing, "stopped with the server");
});

test("what an agent looked up stays visible while it thinks, with the seconds", () => {
  const told = new Story("r1", "");
  const began = 1_000_000;
  const take = (seq: number, event: Event, atMs: number) => told.take(seq, event, atMs, began + atMs);
  take(0, woken(QUOTE), 0);
  take(1, { event: "tool_used", agent: { agent: QUOTE }, tool: "read", argument: "rates.py" } as Event, 1000);
  take(2, { event: "turn_started", agent: { agent: QUOTE } } as Event, 2000);
  const agent = told.agents.get(QUOTE);
  assert.ok(agent);
  assert.deepEqual([agent.doing, agent.looked], ["thinks; last reads rates.py", ["reads rates.py"]]);
  assert.equal(told.seconds(agent, began + 14_500), 12);
});

test("a run of an earlier server has its agents, and none of them is at work", () => {
  const told = new Story("r1", "");
  told.interrupt();
  told.take(0, woken(QUOTE));
  told.take(1, made(1, QUOTE));
  assert.deepEqual([told.agents.size, told.working.length], [1, 0]);
});
