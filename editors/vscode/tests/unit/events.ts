/** A small run in events, for tests. */

import type { Event, Evidence } from "../../src/model/protocol.ts";
import { Story } from "../../src/model/story.ts";

export const QUOTE = "parcels/quote.py::quote";
export const PERCENT = "parcels/rates.py::percent";
const agent = (symbol: string) => ({ agent: symbol });

export const evidence: Evidence = {
  tests: {
    tests: "known",
    command: "python3 -m unittest",
    outcome: "failed",
    passed: 4,
    fixed: ["a.Test.one"],
    broken: ["a.Test.two", "a.Test.three"],
    still_failing: [],
    details: "AssertionError: 1 != 2",
    millis: 20,
  },
  diagnostics: { diagnostics: "unknown", reason: "no language server: ty: not installed" },
  losses: [],
  contract: ['parameter "on" added (required)'],
  callers: ["a.py::f", "b.py::g", "c.py::h", "d.py::i"],
};

export const DIFF = `--- a/parcels/quote.py
+++ b/parcels/quote.py
@@ -1,3 +1,3 @@
 one
-two
+TWO
 three
`;

export const started: Event = {
  event: "run_started",
  task: "season",
  driver: "swarm",
  models: [["agent", "big"]],
  replayed: false,
  limits: { calls: 10, tokens: 10_000, dollars: null, seconds: 60 },
};

export const woken = (symbol: string): Event => ({
  event: "agent_woken",
  agent: agent(symbol),
  cause: { cause: "picked", why: "it decides" },
});

export const turn = (symbol: string, cost = 0): Event => ({
  event: "turn_finished",
  agent: agent(symbol),
  usage: { prompt: 900, cached: 100, output: 100 },
  cost,
  calls: 1,
});

export const made = (proposal: number, symbol: string, revises?: number): Event => ({
  event: "proposal_made",
  proposal,
  agent: agent(symbol),
  symbols: [symbol],
  reason: "because",
  diff: DIFF,
  ...(revises === undefined ? {} : { revises }),
});

export const review = (proposal: number, symbol: string, set: number[] = []): Event => ({
  event: "review_asked",
  proposal,
  agent: agent(symbol),
  symbol,
  diff: DIFF,
  reason: "because",
  evidence,
  with: set,
});

export const asked: Event = {
  event: "asked",
  question: 1,
  from: agent(QUOTE),
  to: agent(PERCENT),
  text: "Round twice?",
};
export const answered: Event = {
  event: "answered",
  question: 1,
  from: agent(PERCENT),
  to: agent(QUOTE),
  text: "Yes.",
  source: "model",
};
export const requested: Event = {
  event: "change_requested",
  from: agent(QUOTE),
  to: agent(PERCENT),
  reason: "add season",
};

export const finished: Event = {
  event: "run_finished",
  stop_reason: { reason: "settled" },
  applied: [QUOTE],
  spent: { calls: 9, prompt_tokens: 16_010, output_tokens: 956, dollars: 0.0123, seconds: 3 },
  summary: "changed quote",
};

export function story(...events: Event[]): Story {
  const told = new Story("r1", "");
  events.forEach((event, seq) => told.take(seq, event));
  return told;
}
