import assert from "node:assert/strict";
import { test } from "node:test";
import { applyDiff, type FileDiff, parseDiff, pathOf } from "../../src/model/diff.ts";
import { DIFF } from "./events.ts";

function only(text: string): FileDiff {
  const [first] = parseDiff(text);
  assert.ok(first);
  return first;
}

test("a diff of several files is read", () => {
  const files = parseDiff(`${DIFF}--- /dev/null\n+++ b/new.py\n@@ -0,0 +1,2 @@\n+a\n+b\n--- a/old.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n`);
  assert.deepEqual(files.map(pathOf), ["parcels/quote.py", "new.py", "old.py"]);
  assert.deepEqual(files.map(({ from, to }) => [from === null, to === null]), [[false, false], [true, false], [false, true]]);
  assert.deepEqual(files.map(({ hunks }) => hunks.length), [1, 1, 1]);
});

test("lines that look like a head are text inside a hunk", () => {
  const diff = only("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- was\n+++ is\n c\n");
  assert.equal(applyDiff("-- was\nc\n", diff), "++ is\nc\n");
});

test("a change is applied where its lines stand", () => {
  assert.equal(applyDiff("one\ntwo\nthree\n", only(DIFF)), "one\nTWO\nthree\n");
});

test("lines that moved are found again", () => {
  assert.equal(applyDiff("zero\nnew\none\ntwo\nthree\n", only(DIFF)), "zero\nnew\none\nTWO\nthree\n");
});

test("the nearest place wins", () => {
  const text = "one\ntwo\nthree\n-\n-\n-\none\ntwo\nthree\n";
  const late = only(DIFF.replace("-1,3 +1,3", "-8,3 +8,3"));
  assert.equal(applyDiff(text, late), "one\ntwo\nthree\n-\n-\n-\none\nTWO\nthree\n");
});

test("typing around the change does not matter, typing in it does", () => {
  assert.equal(applyDiff("ONE\ntwo\nthree\n", only(DIFF)), "ONE\nTWO\nthree\n");
  assert.equal(applyDiff("one\ntwo!\nthree\n", only(DIFF)), null);
});

test("later hunks follow what earlier ones moved", () => {
  const diff = only("--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n a\n+new\n b\n@@ -5,2 +6,1 @@\n e\n-f\n");
  assert.equal(applyDiff("a\nb\nc\nd\ne\nf\ng\n", diff), "a\nnew\nb\nc\nd\ne\ng\n");
});

test("line endings of the file are kept", () => {
  assert.equal(applyDiff("one\r\ntwo\r\nthree\r\n", only(DIFF)), "one\r\nTWO\r\nthree\r\n");
});

test("a file is made and appended to", () => {
  assert.equal(applyDiff("", only("--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+a\n+b\n")), "a\nb\n");
  const append = only("--- a/n\n+++ b/n\n@@ -2,0 +3,1 @@\n+c\n");
  assert.equal(applyDiff("a\nb\n", append), "a\nb\nc\n");
});

test("an addition whose neighbours are gone has no place", () => {
  const diff = only("--- a/n\n+++ b/n\n@@ -1,2 +1,3 @@\n a\n+new\n b\n");
  assert.equal(applyDiff("x\ny\n", diff), null);
});
