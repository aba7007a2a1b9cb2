import assert from "node:assert/strict";
import { test } from "node:test";
import { completed, History, isAtEdge, mentionAt, remembered } from "../../src/model/composer.ts";

test("the mention at the cursor is found, and an address is none", () => {
  assert.deepEqual(mentionAt("See @car", 8), { text: "@car", start: 4 });
  assert.deepEqual(mentionAt("#Cart.t and more", 7), { text: "#Cart.t", start: 0 });
  assert.deepEqual(mentionAt("(@", 2), { text: "@", start: 1 });
  assert.equal(mentionAt("me@shop", 7), undefined);
  assert.equal(mentionAt("See @car now", 12), undefined);
});

test("an item takes the place of what was typed", () => {
  const item = { text: "@shop/cart.py", detail: "" };
  const whole = completed("See @car", { text: "@car", start: 4 }, item);
  assert.deepEqual(whole, { text: "See @shop/cart.py ", cursor: 18 });
  const middle = completed("See @car now", { text: "@car", start: 4 }, item);
  assert.deepEqual(middle, { text: "See @shop/cart.py now", cursor: 18 });
});

test("earlier texts are gone through, and what was written comes back", () => {
  const history = new History();
  history.begin(["one", "two"]);
  assert.equal(history.move(-1, "draft"), "two");
  assert.equal(history.move(-1, "two"), "one");
  assert.equal(history.move(-1, "one"), undefined);
  assert.equal(history.move(1, "one"), "two");
  assert.equal(history.move(1, "two"), "draft");
  assert.equal(history.move(1, "draft"), undefined);
});

test("the last fifty texts are kept, each once", () => {
  const texts = Array.from({ length: 60 }, (_, index) => `task ${index}`);
  const all = texts.reduce<string[]>(remembered, []);
  assert.equal(all.length, 50);
  assert.deepEqual(remembered(["a", "b"], "a"), ["b", "a"]);
});

test("the history is for the first and the last line", () => {
  const text = "first\nlast";
  assert.ok(isAtEdge(text, 3, -1) && !isAtEdge(text, 3, 1));
  assert.ok(!isAtEdge(text, 8, -1) && isAtEdge(text, 8, 1));
  assert.ok(isAtEdge("", 0, -1) && isAtEdge("", 0, 1));
});
