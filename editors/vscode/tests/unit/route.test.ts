import assert from "node:assert/strict";
import { test } from "node:test";
import { bare, Homes, placed } from "../../src/model/route.ts";

test("what is offered says its folder, and the server does not hear of it", () => {
  const lens = { title: "Accept", command: "starling.accept", arguments: [{ run: "r", proposal: 1 }] };
  const [about] = placed(lens, "file:///a")?.arguments ?? [];
  assert.deepEqual(about, { run: "r", proposal: 1, folder: "file:///a" });
  assert.deepEqual(bare(about as object), { run: "r", proposal: 1 });
  assert.equal(placed(undefined, "file:///a"), undefined);
});

test("a run is asked about where it is, and what is about no folder is not guessed", () => {
  const homes = new Homes();
  const both = ["file:///a", "file:///b"];
  homes.learn({ run: "r1", seq: 1 }, "file:///b");
  homes.learn({ ask: "q1" }, "file:///a");
  homes.learn(null, "file:///a");
  assert.equal(homes.find({ run: "r1", proposal: 3 }, both), "file:///b");
  assert.equal(homes.find({ ask: "q1" }, both), "file:///a");
  assert.equal(homes.find({ run: "r1", folder: "file:///a" }, both), "file:///a", "its own word counts");
  assert.equal(homes.find({}, both), undefined);
  assert.equal(homes.find({}, ["file:///a"]), "file:///a");
  assert.equal(homes.of("r2"), undefined);
});
