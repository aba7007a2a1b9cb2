/** Questions and answers of one session, as they stream in. */

import { costOf, count, tokens } from "./words.ts";

/** `starling/answer` */
export interface AnswerParams {
  ask: string;
  step?: Step;
  answer?: Answer;
  error?: string;
}

export type Step =
  | { step: "said"; text: string }
  | { step: "restarted" }
  | { step: "located"; symbols: { symbol: string }[] }
  | { step: "looked"; by: string; tool: string; argument: string }
  | { step: "asked"; symbol: string; question: string }
  | { step: "answered"; symbol: string }
  | { step: "enough" }
  | { step: "mended" }
  | { step: "sent_back"; claims: string[] }
  | { step: "trouble"; who: string; what: string };

export interface Answer {
  answer: string;
  dropped: { citation: string }[];
  uncited: string[];
  ended: { end: string; what?: string; error?: string };
  calls: number;
  prompt_tokens: number;
  output_tokens: number;
  usd: number;
  /** Calls whose price is unknown; left out for none. */
  unpriced_calls?: number;
  seconds: number;
}

export interface Turn {
  question: string;
  symbol: string;
  /** What was done so far, newest last. */
  steps: string[];
  text: string;
  state: "asking" | "answered" | "partial" | "failed";
  /** What it cost, and what is to be known about the answer. */
  foot: string;
}

export class Conversation {
  readonly session: string;
  readonly turns: Turn[];
  #asked: string | null = null;

  /** `turns`: what was said in an earlier window. */
  constructor(session: string, turns: Turn[] = []) {
    this.session = session;
    this.turns = turns;
  }

  /** The id of the question that is being answered. */
  get going(): string | null {
    return this.turns.at(-1)?.state === "asking" ? this.#asked : null;
  }

  get busy(): boolean {
    return this.turns.at(-1)?.state === "asking";
  }

  begin(question: string, symbol: string): void {
    this.#asked = null;
    this.turns.push({ question, symbol, steps: [], text: "", state: "asking", foot: "" });
  }

  /** The server took the question. */
  taken(ask: string): void {
    this.#asked = ask;
  }

  fail(message: string): void {
    this.#last((turn) => {
      turn.state = "failed";
      turn.foot = message;
    });
  }

  take(params: AnswerParams): boolean {
    if (this.#asked !== params.ask) {
      return false;
    }
    if (params.step) {
      this.#step(params.step);
    }
    if (params.answer) {
      this.#end(params.answer);
    }
    if (params.error !== undefined) {
      this.fail(params.error);
    }
    return true;
  }

  #step(step: Step): void {
    this.#last((turn) => {
      switch (step.step) {
        case "said":
          turn.text += step.text;
          return;
        case "restarted":
          turn.text = "";
          turn.steps.push("writes the answer anew");
          return;
        default:
          turn.steps.push(stepWords(step));
      }
    });
  }

  #end(answer: Answer): void {
    this.#last((turn) => {
      turn.text = answer.answer;
      turn.state = answer.ended.end === "answered" ? "answered" : "partial";
      turn.foot = footOf(answer);
    });
  }

  #last(change: (turn: Turn) => void): void {
    const turn = this.turns.at(-1);
    if (turn) {
      change(turn);
    }
  }
}

function stepWords(step: Exclude<Step, { step: "said" | "restarted" }>): string {
  switch (step.step) {
    case "located":
      return `found ${step.symbols
        .slice(0, 3)
        .map(({ symbol }) => symbol)
        .join(", ")}`;
    case "looked":
      return `${step.tool} ${step.argument}`;
    case "asked":
      return `asks the owner of ${step.symbol}: ${step.question}`;
    case "answered":
      return `${step.symbol} answered`;
    case "enough":
      return "writes the answer";
    case "mended":
      return "mends a citation";
    case "sent_back":
      return "checks claims again";
    case "trouble":
      return `${step.who}: ${step.what}`;
    default:
      return "";
  }
}

function footOf(answer: Answer): string {
  const unpriced = answer.unpriced_calls ?? 0;
  const cost = answer.usd === 0 && unpriced > 0 ? "price unknown" : costOf({ dollars: answer.usd, unpriced });
  const used = `${count(answer.calls, "call")} · ${tokens(answer.prompt_tokens + answer.output_tokens)} tokens · ${cost}`;
  const ended = answer.ended;
  const parts = [
    used,
    `${answer.seconds.toFixed(1)} s`,
    answer.dropped.length > 0 ? `${count(answer.dropped.length, "citation")} could not be verified` : "",
    answer.uncited.length > 0 ? `${count(answer.uncited.length, "claim")} without a citation` : "",
    ended.end === "answered"
      ? ""
      : `only the best so far: ${ended.what ?? ended.error ?? ended.end.replaceAll("_", " ")}`,
  ];
  return parts.filter(Boolean).join(" · ");
}
