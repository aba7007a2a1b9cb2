import assert from "node:assert/strict";
import { test } from "node:test";
import { modelChoices } from "../../src/model/models.ts";

const reply = {
  chosen: "big",
  models: [
    { name: "big", detail: "big-1 at http://box/v1" },
    { name: "local", detail: "on this machine" },
  ],
  keys: [
    { provider: "OpenAI", variable: "OPENAI_API_KEY", prefix: "openai:" },
    { provider: "Groq", variable: "GROQ_API_KEY", prefix: null },
  ],
};

test("the present model is marked, and keys lead to names", () => {
  const choices = modelChoices(reply, "");
  assert.deepEqual(
    choices.map(({ label }) => label),
    ["$(check) big", "local", "openai:…", "Groq…"],
  );
});

test("the model of the settings counts, also where the server does not list it", () => {
  const choices = modelChoices(reply, "openai:x");
  assert.deepEqual(
    choices.map(({ name, present }) => [name, present]),
    [
      ["openai:x", true],
      ["big", false],
      ["local", false],
      ["openai:", false],
      ["", false],
    ],
  );
  assert.deepEqual(
    modelChoices({ chosen: null, models: [], keys: [] }, "").map(({ name }) => name),
    [],
  );
});
