import assert from "node:assert/strict";
import { test } from "node:test";
import { type Answer, Conversation } from "../../src/model/conversation.ts";
import { blocks, inlines } from "../../src/model/markdown.ts";

const answer: Answer = {
  answer: "Whole.",
  dropped: [],
  uncited: [],
  ended: { end: "answered" },
  calls: 2,
  prompt_tokens: 3000,
  output_tokens: 200,
  usd: 0.01,
  seconds: 1.25,
};

function begun(): Conversation {
  const conversation = new Conversation("s");
  conversation.begin("Why?", "");
  conversation.taken("a1");
  return conversation;
}

test("an answer streams, is begun anew, and ends", () => {
  const conversation = begun();
  const last = () => conversation.turns.at(-1);
  assert.equal(conversation.going, "a1");
  conversation.take({ ask: "a1", step: { step: "looked", by: "reader", tool: "read", argument: "a.py" } });
  conversation.take({ ask: "a1", step: { step: "said", text: "Wrong" } });
  conversation.take({ ask: "a1", step: { step: "restarted" } });
  conversation.take({ ask: "a1", step: { step: "said", text: "Ri" } });
  conversation.take({ ask: "a1", step: { step: "said", text: "ght" } });
  assert.equal(last()?.text, "Right");
  assert.deepEqual(last()?.steps, ["read a.py", "writes the answer anew"]);
  conversation.take({ ask: "a1", answer });
  assert.equal(last()?.text, "Whole.");
  assert.equal(last()?.state, "answered");
  assert.equal(last()?.foot, "2 calls · 3.2k tokens · $0.010 · 1.3 s");
  const unpriced = begun();
  unpriced.take({ ask: "a1", answer: { ...answer, usd: 0, unpriced_calls: 2 } });
  assert.equal(unpriced.turns.at(-1)?.foot, "2 calls · 3.2k tokens · price unknown · 1.3 s");
  assert.equal(conversation.going, null);
});

test("what is not to be relied on is said", () => {
  const conversation = begun();
  const ended = { end: "budget_used_up", what: "60 of 60 calls" };
  conversation.take({ ask: "a1", answer: { ...answer, dropped: [{ citation: "a.py:9" }], uncited: ["x"], ended } });
  const turn = conversation.turns.at(-1);
  assert.equal(turn?.state, "partial");
  assert.match(
    turn?.foot ?? "",
    /1 citation could not be verified · 1 claim without a citation · only the best so far: 60 of 60 calls/,
  );
});

test("answers to other questions pass by, errors end the turn", () => {
  const conversation = begun();
  assert.equal(conversation.take({ ask: "other", answer }), false);
  conversation.take({ ask: "a1", error: "no model answers" });
  assert.equal(conversation.turns.at(-1)?.state, "failed");
  assert.equal(conversation.turns.at(-1)?.foot, "no model answers");
});

test("citations become places, bare and in code", () => {
  assert.deepEqual(inlines("See `shop/cart.py:14` and shop/tax.py:3-9, not 12:30."), [
    { kind: "text", text: "See " },
    { kind: "place", text: "shop/cart.py:14", path: "shop/cart.py", line: 14 },
    { kind: "text", text: " and " },
    { kind: "place", text: "shop/tax.py:3-9", path: "shop/tax.py", line: 3 },
    { kind: "text", text: ", not 12:30." },
  ]);
  assert.deepEqual(
    inlines("**bold** *so* `x = 1`").map(({ kind }) => kind),
    ["strong", "text", "emphasis", "text", "code"],
  );
});

test("paragraphs, headings, lists and code are blocks", () => {
  const found = blocks("# Head\n\none\ntwo\n\n- a\n  more\n- b\n1. c\n\n```py\n# not a head\n- no item\n```\nend");
  assert.deepEqual(
    found.map(({ kind }) => kind),
    ["heading", "paragraph", "list", "code", "paragraph"],
  );
  assert.deepEqual(found[2]?.kind === "list" && found[2].items.length, 3);
  assert.deepEqual(found[3]?.kind === "code" && found[3].text, "# not a head\n- no item");
});

test("code that is still being written is code", () => {
  assert.deepEqual(blocks("```\nx = 1"), [{ kind: "code", text: "x = 1" }]);
});

test("markup of a page is text", () => {
  assert.deepEqual(inlines("<img src=x onerror=alert(1)>"), [{ kind: "text", text: "<img src=x onerror=alert(1)>" }]);
});
