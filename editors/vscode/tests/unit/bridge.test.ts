import assert from "node:assert/strict";
import { test } from "node:test";
import { inTime, locationsOf, Reports } from "../../src/model/bridge.ts";

const span = (line: number) => ({ start: { line, character: 4 }, end: { line, character: 9 } });
const file = new URL("file:///w/a.py");

test("locations and links become locations, each once", () => {
  const at = { uri: "file:///w/a.py", range: span(3) };
  assert.deepEqual(locationsOf([{ uri: file, range: span(3) }]), [at]);
  const link = { targetUri: file, targetRange: span(1), targetSelectionRange: span(3) };
  assert.deepEqual(locationsOf([link, { uri: file, range: span(3) }]), [at]);
  assert.deepEqual(locationsOf([{ targetUri: file, targetRange: span(3) }]), [at]);
});

test("nothing found is not known: there may have been nobody to ask", () => {
  assert.equal(locationsOf([]), null);
  assert.equal(locationsOf(undefined), null);
});

test("an answer that does not come is null, and an error stays one", async () => {
  assert.equal(await inTime(new Promise(() => undefined), 1), null);
  assert.equal(await inTime(Promise.resolve(3), 60_000), 3);
  await assert.rejects(inTime(Promise.reject(new Error("broken")), 60_000), /broken/);
});

test("problems count when they were reported for this text", async () => {
  const reports = new Reports();
  reports.tell("a", 2);
  assert.equal(await reports.reported("a", 2), true);
  const newer = reports.reported("a", 3);
  const other = reports.reported("b", 0);
  assert.equal(await inTime(newer, 1), null, "not yet");
  reports.tell("b", 7);
  assert.equal(await other, true);
  reports.tell("a", 4);
  assert.equal(await newer, true);
  reports.forget("a");
  assert.equal(await inTime(reports.reported("a", 1), 1), null, "it was closed");
});
