/** A project, and a model whose answers are recorded: the parcels of `fixtures`, with one more after a reject. */

import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const fixtures = resolve(import.meta.dirname, "../../../../fixtures");

/** The owner whose first proposal is to be rejected. */
const OWNER = "agent parcels/rates.py::percent";

export interface Scene {
  folder: string;
  project: string;
  task: string;
  replay: string;
  cache: string;
}

export function makeScene(): Scene {
  const folder = mkdtempSync(join(tmpdir(), "starling-vscode-"));
  const project = join(folder, "parcels");
  cpSync(join(fixtures, "replay-project"), project, { recursive: true });
  const recorded = readFileSync(join(fixtures, "replay/parcels.jsonl"), "utf8").trimEnd().split("\n");
  const replay = join(folder, "answers.jsonl");
  writeFileSync(replay, `${[...recorded.flatMap(withRevision), answer()].join("\n")}\n`);
  const cache = join(folder, "cache");
  mkdirSync(cache);
  const task = readFileSync(join(project, "TASK.md"), "utf8").trim();
  return { folder, project, task, replay, cache };
}

function withRevision(line: string): string[] {
  const record = JSON.parse(line);
  if (record.exchange?.conversation !== OWNER) {
    return [line];
  }
  record.exchange.ordinal = 1;
  const [call] = record.exchange.reply.Ok.tool_calls;
  call.id = "again";
  const proposal = JSON.parse(call.arguments);
  const [added] = proposal.add;
  added.source = added.source.replace("23 December.", "23 December, both days included.");
  proposal.reason = "The docstring now says that both days belong to the season.";
  call.arguments = JSON.stringify(proposal);
  return [line, JSON.stringify(record)];
}

/** What is said to a question. */
const ANSWER =
  "`percent` rounds half up to a whole cent [parcels/rates.py:17]. Who uses it:\n\n" +
  "- `quote`, for the express surcharge [parcels/quote.py:21]";

function answer(): string {
  const usage = { prompt: 900, cached: 0, output: 20 };
  const reply = { model: "recorded", text: ANSWER, tool_calls: [], finish: "stop", usage, cost: 0, calls: 1 };
  const of = { conversation: "ask", role: "scout", ordinal: 0, prompt: [], tools: [], millis: 1 };
  return JSON.stringify({ exchange: { ...of, reply: { Ok: reply } } });
}

export function textOf(scene: Scene, path: string): string {
  return readFileSync(join(scene.project, path), "utf8");
}
