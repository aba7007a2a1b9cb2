/** What the server says and takes, as far as this extension uses it (docs/protocol.md). */

export type Party = "user" | "scout" | "proxy" | "starling" | "solo" | { agent: string };

export interface Limits {
  calls: number;
  tokens: number;
  dollars: number | null;
  seconds: number;
}

export type Verdict =
  { verdict: "accept" } | { verdict: "reject"; reason: string } | { verdict: "steer"; text: string };

export interface TestCase {
  id: string;
  status: "passed" | "failed" | "error" | "skipped";
  message: string;
}

export interface TestReport {
  outcome: string;
  command: string;
  cases: TestCase[];
  output: string;
  millis: number;
}

export type TestEvidence =
  | { tests: "unknown"; reason: string }
  | {
      tests: "known";
      command: string;
      outcome: string;
      passed: number;
      fixed: string[];
      broken: string[];
      still_failing: string[];
      /** Tests that failed and passed on the same text. */
      unsteady?: string[];
      details: string;
      millis: number;
      /** Tests that pass only with test files that the run changed. */
      only_as_changed?: { tests: string[]; details?: string };
      /** Tests that pass because files were changed meanwhile. */
      mended_elsewhere?: string[];
      /** Cases that are gone because the change edits their parametrized test. */
      gone_cases?: string[];
      /** `printed` where the results are read from what the command printed. */
      source?: string;
    };

export interface Problem {
  file: string;
  line: number;
  message: string;
}

export type DiagnosticEvidence =
  | { diagnostics: "absent" }
  | { diagnostics: "unknown"; reason: string }
  | { diagnostics: "known"; tool: string; new: Problem[]; before: number; after: number };

export interface Evidence {
  tests: TestEvidence;
  diagnostics: DiagnosticEvidence;
  /** What the examples of the task did without the change and do with it, in one line each. */
  examples?: { code: string; before: string; after: string }[];
  losses: unknown[];
  contract: string[];
  callers: string[];
  /** Files that are changed only after a person accepted that very change. */
  needs_person?: { file: string; why: string }[];
  together?: { with: string[]; tests: TestEvidence };
  /** What of the checks is overridden by showing it, and why. */
  overridden?: string;
  /** What was changed since the checks, where the results belong to an earlier text. */
  outdated?: string;
}

export type Cause =
  | { cause: "picked"; why: string }
  | { cause: "change_request"; from: Party; reason: string }
  | { cause: "follow_up"; changed: string; changes: string[] }
  | { cause: "failed_tests"; message: string }
  | { cause: "steered"; text: string }
  | { cause: "declined"; by: Party; reason: string };

export type Outcome = { outcome: "changed" } | { outcome: "nothing_to_change" } | { outcome: "gave_up"; why: string };

export type StopReason =
  | { reason: "settled" }
  | { reason: "nothing_changed"; why: string }
  | { reason: "tests_fail"; failing: string[] }
  | { reason: "problems_remain"; problems: string[] }
  | { reason: "ledger_empty"; what: string }
  | { reason: "cancelled" }
  | { reason: "failed"; error: string };

export interface Spent {
  calls: number;
  prompt_tokens: number;
  output_tokens: number;
  dollars: number;
  seconds: number;
  /** Calls whose price nobody knows; left out when there are none. */
  unpriced_calls?: number;
}

/** The events that change what is shown. Others pass by. */
export type Event =
  | {
      event: "run_started";
      task: string;
      driver: string;
      models: [string, string][];
      replayed: boolean;
      limits: Limits;
    }
  | { event: "tests_run"; phase: "before" | "proposal" | "settling"; proposal: number | null; report: TestReport }
  | { event: "located"; candidates: { symbol: string }[]; millis: number }
  | { event: "scout_picked"; symbols: [string, string][] }
  | { event: "agent_woken"; agent: Party; cause: Cause }
  | { event: "agent_finished"; agent: Party; outcome: Outcome; summary: string }
  | { event: "turn_started"; agent: Party; turn: number }
  | {
      event: "turn_finished";
      agent: Party;
      usage: { prompt: number; cached: number; output: number };
      cost: number;
      calls: number;
    }
  | { event: "turn_failed"; agent: Party; error: string }
  | { event: "notice"; agent: Party; notice: unknown }
  | { event: "malformed"; agent: Party; what: string }
  | { event: "taken_back"; diff: string; patch: string | null; left: [number, string][] }
  | { event: "not_woken"; symbol: string; from: Party; why: string }
  | { event: "tool_used"; agent: Party; tool: string; argument: string; outcome: string }
  | { event: "asked"; question: number; from: Party; to: Party; text: string }
  | { event: "answered"; question: number; from: Party; to: Party; text: string; source: string }
  | { event: "change_requested"; from: Party; to: Party; reason: string }
  | { event: "change_declined"; by: Party; to: Party; reason: string }
  | { event: "intent_stated"; agent: Party; intent: string; reason: string }
  | { event: "intent_reviewed"; agent: Party; by: Party; verdict: Verdict }
  | {
      event: "proposal_made";
      proposal: number;
      agent: Party;
      symbols: string[];
      reason: string;
      diff: string;
      revises?: number;
    }
  | { event: "proposal_refused"; agent: Party; why: string }
  | { event: "proposal_checked"; proposal: number; evidence: Evidence }
  | {
      event: "review_asked";
      proposal: number;
      agent: Party;
      symbol: string;
      diff: string;
      reason: string;
      evidence: Evidence;
      with?: number[];
    }
  | { event: "proposal_edited"; proposal: number; symbols: string[]; diff: string }
  | { event: "proposal_reviewed"; proposal: number; by: Party; verdict: Verdict }
  | { event: "proposal_applied"; proposal: number; symbols: string[]; diff: string }
  | { event: "proposal_conflicted"; proposal: number; why: string }
  | { event: "proposal_not_applied"; proposal: number; why: string }
  | { event: "proposal_undone"; proposal: number; by_editor?: boolean; unsaved?: boolean }
  | { event: "followed_up"; changed: string; changes: string[]; to: string[] }
  | { event: "steered"; to: string | null; text: string }
  | {
      event: "run_finished";
      stop_reason: StopReason;
      applied: string[];
      spent: Spent;
      summary: string;
      ending?: Ending;
    };

/** How a run ended: in one line, and whether tests prove its changes. */
export interface Ending {
  proof: "proven" | "as_before" | "nothing_to_prove" | "unproven" | "not_done";
  headline: string;
}

/** `starling/event` */
export interface EventParams {
  run: string;
  seq: number;
  at_ms: number;
  event: Event;
}

/** `starling/intent` */
export interface IntentParams {
  run: string;
  symbol: string;
  intent: string;
  reason: string;
}

/** What can be done where the model could not be asked. */
export type Remedy =
  | { remedy: "download"; model: string; bytes: number }
  | { remedy: "key" }
  | { remedy: "endpoint" }
  | { remedy: "model" };

/** `starling/remedy` */
export type RemedyParams = Remedy & { run: string; task: string; message: string };

/** `starling/download` */
export interface DownloadParams {
  run: string;
  model: string;
  bytes: number;
  total: number;
}

/** `starling/undone` */
export interface UndoneParams {
  run: string;
  proposals: number[];
  /** What was not taken back, and why. */
  error?: string;
  /** What may be broken, because a proposal was taken back alone that others belong to. */
  warning?: string;
}
