/** Projects, each in a folder of its own, and who answers for the model. */

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Model } from "./model.ts";

const fixtures = resolve(import.meta.dirname, "../../../../fixtures");

/** The owner whose first proposal is to be rejected. */
const OWNER = "agent parcels/rates.py::percent";

export interface Scene {
  folder: string;
  project: string;
  cache: string;
  /** What the address names to be opened; without it the project. */
  open?: string;
  /** What is set of the server. */
  settings: Record<string, unknown>;
  /** Ends what the scene itself has started. */
  stop(): void;
}

export interface Parcels extends Scene {
  task: string;
}

/** The parcels of `fixtures`, with recorded answers, and one more after a reject. */
export async function makeParcels(): Promise<Parcels> {
  const { folder, cache } = bed();
  const project = join(folder, "parcels");
  cpSync(join(fixtures, "replay-project"), project, { recursive: true });
  const recorded = readFileSync(join(fixtures, "replay/parcels.jsonl"), "utf8").trimEnd().split("\n");
  const replay = join(folder, "answers.jsonl");
  writeFileSync(replay, `${[...recorded.flatMap(withRevision), answer()].join("\n")}\n`);
  const task = readFileSync(join(project, "TASK.md"), "utf8").trim();
  const settings = { "starling.model": `replay:${replay}` };
  return { folder, project, cache, task, settings, stop: () => undefined };
}

export interface Prices extends Scene {
  model: Model;
  /** A second folder beside the project. */
  other: string;
  git(...args: string[]): string;
}

export const PRICE = `"""Prices."""


def price():
    """What it costs."""
    base = 100
    extra = 19
    return base + extra


def label():
    """How it is written."""
    return "price"
`;

export const TAX = `"""Taxes."""


def tax():
    """What is taken."""
    return 10
`;

const BILL = `import unittest

from price import price
from tax import tax


class BillTest(unittest.TestCase):
    def test_bill(self):
        self.assertEqual(price() * tax(), 1190)
`;

/** Two small files in a repository, a folder beside it, and a scripted model. */
export async function makePrices(): Promise<Prices> {
  const { folder, cache } = bed();
  const [project, other] = [join(folder, "prices"), join(folder, "other")];
  for (const place of [project, other]) {
    mkdirSync(place);
    writeFileSync(join(place, "price.py"), PRICE);
    writeFileSync(join(place, "tax.py"), TAX);
  }
  const git = (...args: string[]) => {
    const who = ["-c", "user.name=Test", "-c", "user.email=test@localhost"];
    return execFileSync("git", [...who, ...args], { cwd: project, encoding: "utf8" });
  };
  git("init", "--quiet", "--initial-branch", "main");
  git("add", ".");
  git("commit", "--quiet", "--message", "Prices and taxes");
  const model = await Model.start();
  return { folder, project, other, cache, settings: model.settings, model, git, stop: () => model.stop() };
}

/** The same with a test that both files must suit. */
export async function makeTested(): Promise<Prices> {
  const scene = await makePrices();
  writeFileSync(join(scene.project, "test_bill.py"), BILL);
  return scene;
}

function bed(): { folder: string; cache: string } {
  const folder = mkdtempSync(join(tmpdir(), "starling-vscode-"));
  const cache = join(folder, "cache");
  mkdirSync(cache);
  return { folder, cache };
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
