import assert from "node:assert/strict";
import { test } from "node:test";
import { buttons, downloadPhase } from "../../src/model/remedy.ts";

test("what helps most is the first button", () => {
  const download = { remedy: "download", model: "qwen", bytes: 1_117_320_768 } as const;
  assert.deepEqual(buttons(download), ["Download (1.1 GB)", "Choose a Model", "Set API Key"]);
  assert.equal(buttons({ remedy: "key" })[0], "Set API Key");
  assert.equal(buttons({ remedy: "endpoint" })[0], "Try Again");
  assert.ok(!buttons({ remedy: "model" }).includes("Try Again"), "the same would happen again");
});

test("a download is told in per cent", () => {
  assert.equal(downloadPhase(0, 0), "downloading the model: 0 %");
  assert.equal(downloadPhase(999, 1000), "downloading the model: 99 %");
});
