import assert from "node:assert/strict";
import { test } from "node:test";
import { outline } from "../../src/model/outline.ts";
import type { Ending, Event, Evidence, StopReason } from "../../src/model/protocol.ts";
import type { Story } from "../../src/model/story.ts";
import {
  evidenceLines,
  few,
  isGood,
  ledgerLine,
  ledgerLines,
  ledgerShare,
  statusLine,
  stopSentence,
} from "../../src/model/words.ts";
import { evidence, finished, made, QUOTE, review, started, story, turn, woken } from "./events.ts";

test("the ledger in one line", () => {
  assert.equal(ledgerLine({ calls: 1, tokens: 999, dollars: 0 }), "1 call · 999 tokens");
  assert.equal(ledgerLine({ calls: 1, tokens: 999, dollars: 0, unpriced: 0 }), "1 call · 999 tokens · $0.00");
  assert.equal(ledgerLine({ calls: 1, tokens: 999, dollars: 0, unpriced: 1 }), "1 call · 999 tokens · price unknown");
  const some = ledgerLine({ calls: 2, tokens: 999, dollars: 0.5, unpriced: 1 });
  assert.equal(some, "2 calls · 999 tokens · $0.50 · price of 1 call unknown");
  assert.equal(ledgerLine({ calls: 9, tokens: 16_966, dollars: 0.0123 }), "9 calls · 17.0k tokens · $0.012");
  assert.equal(ledgerLine({ calls: 60, tokens: 1_234_567, dollars: 12.3 }), "60 calls · 1.23M tokens · $12.30");
});

test("the ledger against its limits", () => {
  const used = { calls: 3, tokens: 5000, dollars: 0.4 };
  const limits = { calls: 10, tokens: 10_000, dollars: 0.5, seconds: 60 };
  assert.deepEqual(ledgerLines(used, limits), ["Calls: 3 of 10", "Tokens: 5.0k of 10.0k", "Dollars: $0.40 of $0.50"]);
  assert.equal(ledgerShare(used, limits), 0.8);
  assert.equal(ledgerShare(used, { ...limits, dollars: null }), 0.5);
  assert.equal(ledgerShare(used, null), 0);
  assert.equal(ledgerLines(used, { ...limits, dollars: null })[2], "Dollars: $0.40, no limit");
  // A cost of nothing is said only where every price is known.
  const free = { ...used, dollars: 0 };
  assert.equal(ledgerLines(free, null)[2], "Dollars: unknown, no limit");
  assert.equal(ledgerLines({ ...free, unpriced: 0 }, null)[2], "Dollars: $0.00, no limit");
  assert.equal(ledgerLines({ ...used, unpriced: 2 }, null)[2], "Dollars: $0.40 and 2 calls of unknown price, no limit");
});

test("the status says what matters most", () => {
  const told = story(started, woken(QUOTE), turn(QUOTE));
  assert.equal(statusLine(told), "1 agent at work · 1 call · 1.0k tokens");
  told.take(8, made(1, QUOTE));
  told.take(9, review(1, QUOTE));
  assert.equal(statusLine(told), "1 to review · 1 call · 1.0k tokens");
  told.take(10, finished);
  assert.equal(statusLine(told), "settled · 9 calls · 17.0k tokens · $0.012");
});

test("every end says what it is and what to do", () => {
  const ends: StopReason[] = [
    { reason: "settled" },
    { reason: "nothing_changed", why: "it holds already" },
    { reason: "tests_fail", failing: ["a", "b", "c", "d"] },
    { reason: "ledger_empty", what: "60 of 60 model calls" },
    { reason: "cancelled" },
    { reason: "failed", error: "no model answers" },
  ];
  const said = ends.map(stopSentence);
  assert.equal(new Set(said).size, ends.length);
  assert.match(said[2] ?? "", /^4 tests still fail: a, b, c and 1 more$/);
  assert.match(said[3] ?? "", /Raise it in the settings/);
});

test("the headline of the end stands beside its sentence, and its proof says whether it is good", () => {
  const end = (ending?: Ending) => story(started, { ...finished, ending } as Event);
  const proven = end({ proof: "proven", headline: "Done and proven: 3 tests pass" });
  const row = outline(proven).children[0];
  assert.match(row?.label ?? "", /^Settled: /);
  assert.equal(row?.description, "Done and proven: 3 tests pass");
  assert.match(row?.tooltip ?? "", /Done and proven: 3 tests pass\n\nchanged quote$/);
  const good = (told: Story) => told.end !== null && isGood(told.end);
  assert.deepEqual(good(end({ proof: "as_before", headline: "Done: 3 tests pass as before" })), true);
  assert.deepEqual([proven, end({ proof: "unproven", headline: "Done, untested: no test ran" }), end()].map(good), [
    true,
    false,
    true,
  ]);
});

test("evidence is one fact a line", () => {
  assert.deepEqual(evidenceLines(evidence), [
    "4 passed · 1 fixed · 2 broken",
    "diagnostics unknown: no language server",
    'contract: parameter "on" added (required)',
    "callers to follow: a.py::f, b.py::g, c.py::h and 1 more",
  ]);
  const only_as_changed = { tests: ["a.Test.one"] };
  const tests = { ...evidence.tests, source: "printed", only_as_changed, unsteady: ["b"] } as Evidence["tests"];
  assert.equal(
    evidenceLines({ ...evidence, tests })[0],
    "4 passed by what the command printed · 1 fixed · 2 broken · 1 only as the run changed the tests · 1 failing now and then",
  );
  const needs_person = [{ file: "Makefile", why: "builds run it" }];
  assert.equal(evidenceLines({ ...evidence, needs_person })[0], "needs your own yes: Makefile: builds run it");
  const examples = [{ code: "f(1)", before: "TypeError: no", after: "2" }];
  assert.ok(evidenceLines({ ...evidence, examples }).includes("example of the task: TypeError: no, now 2"));
  const together = { with: ["a.py::f"], tests: { tests: "unknown", reason: "no time" } as const };
  assert.equal(evidenceLines({ ...evidence, together })[1], "with 1 other proposal: tests unknown: no time");
});

test("where no tool looked nothing is said of diagnostics", () => {
  const lines = (diagnostics: object) => evidenceLines({ ...evidence, diagnostics } as Evidence);
  assert.deepEqual(lines({ diagnostics: "absent" }), lines({ diagnostics: "of a newer server" }));
  assert.ok(!lines({ diagnostics: "absent" }).some((line) => line.includes("diagnostics")));
  const known = { diagnostics: "known", tool: "ty 1", new: [{}], before: 0, after: 1 };
  assert.ok(lines(known).includes("1 new problem (ty 1)"));
});

test("a long list is cut", () => {
  assert.equal(few(["a", "b"]), "a, b");
  assert.equal(few(["a", "b", "c", "d"], 1), "a and 3 more");
});
