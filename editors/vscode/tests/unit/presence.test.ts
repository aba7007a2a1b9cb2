import assert from "node:assert/strict";
import { test } from "node:test";
import { placeHint } from "../../src/model/presence.ts";

test("one who types where an agent works is told so, and what is typed elsewhere is not spoken of", () => {
  const workers = [
    { symbol: "a.py::C", doing: "reads" },
    { symbol: "a.py::", doing: "thinks" },
  ];
  const told = "An agent is at work on C: reads. What you type stays.";
  assert.equal(placeHint("a.py::C", workers), told);
  assert.equal(placeHint("a.py::C.m", workers), told, "it holds what is in it");
  assert.equal(placeHint("a.py::Cat", workers), null);
  assert.equal(placeHint("b.py::C", workers), null);
  assert.equal(placeHint("a.py::f", workers), null, "the module body does not hold its functions");
  assert.match(placeHint("a.py::", workers) ?? "", /on a\.py: thinks/);
  assert.equal(placeHint("a.py::C", []), null);
});
