/** What people read: ledger, stop reasons, evidence. */

import type { DiagnosticEvidence, Evidence, Limits, StopReason, TestEvidence } from "./protocol.ts";
import type { End, Proposal, ProposalState, Story, Used } from "./story.ts";

export function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}

/** 16010 as `16.0k`. */
export function tokens(number: number): string {
  if (number < 1000) {
    return `${number}`;
  }
  return number < 1_000_000 ? `${(number / 1000).toFixed(1)}k` : `${(number / 1_000_000).toFixed(2)}M`;
}

export function dollars(amount: number): string {
  return `$${amount.toFixed(amount > 0 && amount < 0.1 ? 3 : 2)}`;
}

/** `9 calls · 17.0k tokens · $0.12`. A cost of nothing is said only where every price is known. */
export function ledgerLine({ calls, tokens: used, dollars: money, unpriced }: Used): string {
  const parts = [count(calls, "call"), `${tokens(used)} tokens`];
  if (money > 0 || unpriced === 0) {
    parts.push(dollars(money));
  }
  if (unpriced !== undefined && unpriced > 0) {
    parts.push(money > 0 ? `price of ${count(unpriced, "call")} unknown` : "price unknown");
  }
  return parts.join(" · ");
}

/** What calls cost, as far as their prices are known. */
export function costOf({ dollars: money, unpriced }: Pick<Used, "dollars" | "unpriced">): string {
  if (money > 0) {
    return unpriced ? `${dollars(money)} and ${count(unpriced, "call")} of unknown price` : dollars(money);
  }
  return unpriced === 0 ? dollars(0) : "unknown";
}

/** Each line of the ledger against its limit. */
export function ledgerLines(used: Used, limits: Limits | null): string[] {
  const of = (limit: string | undefined) => (limit === undefined ? "" : ` of ${limit}`);
  return [
    `Calls: ${used.calls}${of(limits?.calls.toString())}`,
    `Tokens: ${tokens(used.tokens)}${of(limits ? tokens(limits.tokens) : undefined)}`,
    `Dollars: ${costOf(used)}${limits?.dollars ? of(dollars(limits.dollars)) : ", no limit"}`,
  ];
}

/** How full the fullest part of the ledger is, from 0 to 1. */
export function ledgerShare(used: Used, limits: Limits | null): number {
  if (!limits) {
    return 0;
  }
  const money = limits.dollars ? used.dollars / limits.dollars : 0;
  return Math.min(1, Math.max(used.calls / limits.calls, used.tokens / limits.tokens, money));
}

/** What the status bar says of the newest run. */
export function statusLine(story: Story): string {
  const waiting = story.waiting.length + story.intents.size;
  const ledger = ledgerLine(story.used);
  if (waiting > 0) {
    return `${waiting} to review · ${ledger}`;
  }
  if (story.interrupted) {
    return `interrupted · ${ledger}`;
  }
  if (story.end) {
    return `${stopWord(story.end.reason)} · ${ledger}`;
  }
  const working = story.working.length;
  return `${working > 0 ? `${count(working, "agent")} at work` : story.phase} · ${ledger}`;
}

export function stopWord(reason: StopReason): string {
  switch (reason.reason) {
    case "settled":
      return "settled";
    case "nothing_changed":
      return "nothing changed";
    case "tests_fail":
      return "tests fail";
    case "problems_remain":
      return "problems remain";
    case "ledger_empty":
      return "limit reached";
    case "cancelled":
      return "stopped";
    case "failed":
      return "failed";
  }
}

/** How a run is over; empty while it goes. */
export function endSentence(story: Story): string {
  if (story.interrupted) {
    return story.waiting.length > 0
      ? "Interrupted: the server was started anew. What waits can still be decided."
      : "Interrupted: the server was started anew. Run Again begins the task once more.";
  }
  return story.end ? stopSentence(story.end.reason) : "";
}

/** Whether a run ended with nothing left to do for its user. */
export function isGood(end: End): boolean {
  switch (end.ending?.proof) {
    case "proven":
    case "as_before":
    case "nothing_to_prove":
      return true;
    case "unproven":
    case "not_done":
      return false;
    case undefined:
      return end.reason.reason === "settled";
  }
}

export function stopSentence(reason: StopReason): string {
  switch (reason.reason) {
    case "settled":
      return "Settled: no agent has work, and no test fails that passed before.";
    case "nothing_changed":
      return `Nothing was changed: ${reason.why}`;
    case "tests_fail":
      return `${count(reason.failing.length, "test")} still fail: ${few(reason.failing)}`;
    case "problems_remain":
      return `${count(reason.problems.length, "new problem")}: ${few(reason.problems)}`;
    case "ledger_empty":
      return `The limit was reached: ${reason.what}. Raise it in the settings, and run again.`;
    case "cancelled":
      return "You stopped the run. What you accepted stays.";
    case "failed":
      return reason.error;
  }
}

export function proposalWord(state: ProposalState): string {
  switch (state) {
    case "checking":
      return "is checked";
    case "refused":
      return "sent back by its checks";
    case "waiting":
      return "waits for you";
    case "accepted":
      return "accepted";
    case "rejected":
      return "rejected";
    case "steered":
      return "steered";
    case "applied":
      return "applied";
    case "conflicted":
      return "conflicts with what you typed";
    case "undone":
      return "undone";
    case "dropped":
      return "not decided";
  }
}

/** The tests in one line: `8 passed · 2 fixed · 1 broken`. */
export function testsLine(tests: TestEvidence): string {
  if (tests.tests === "unknown") {
    return `tests unknown: ${tests.reason}`;
  }
  // Those that it fixed are among them.
  const parts = [`${tests.passed} passed${tests.source === "printed" ? " by what the command printed" : ""}`];
  const more: [string[], string][] = [
    [tests.fixed, "fixed"],
    [tests.broken, "broken"],
    [tests.only_as_changed?.tests ?? [], "only as the run changed the tests"],
    [tests.still_failing, "still failing"],
    [tests.unsteady ?? [], "failing now and then"],
    [tests.mended_elsewhere ?? [], "passing since files changed meanwhile, not by this change"],
    [tests.gone_cases ?? [], "gone with the change of their parametrized test"],
  ];
  for (const [ids, word] of more) {
    if (ids.length > 0) {
      parts.push(`${ids.length} ${word}`);
    }
  }
  return parts.join(" · ");
}

/** Nothing where no tool looked, and of what only a newer server says. */
export function diagnosticsLines(found: DiagnosticEvidence): string[] {
  switch (found.diagnostics) {
    case "unknown":
      return [`diagnostics unknown: ${found.reason.split(/[;:]/)[0]}`];
    case "known": {
      const fresh = found.new.length;
      return [`${fresh === 0 ? "no new problem" : count(fresh, "new problem")} (${found.tool})`];
    }
    case "absent":
    default:
      return [];
  }
}

/** Why something is proposed, and its tests, in one line. */
export function headline({ reason, evidence }: Proposal): string {
  const first = reason.trim().split("\n")[0] ?? "";
  return evidence ? `${first} · ${testsLine(evidence.tests)}` : first;
}

/** Evidence as short lines, one fact each. */
export function evidenceLines(evidence: Evidence): string[] {
  const lines = (evidence.needs_person ?? []).map(({ file, why }) => `needs your own yes: ${file}: ${why}`);
  lines.push(testsLine(evidence.tests));
  if (evidence.overridden) {
    lines.unshift(`shown although ${evidence.overridden}`);
  }
  if (evidence.outdated) {
    lines.unshift(`out of date: ${evidence.outdated}`);
  }
  if (evidence.together) {
    const others = count(evidence.together.with.length, "other proposal");
    lines.push(`with ${others}: ${testsLine(evidence.together.tests)}`);
  }
  lines.push(...diagnosticsLines(evidence.diagnostics));
  for (const { before, after } of evidence.examples ?? []) {
    lines.push(`example of the task: ${before === after ? `${after}, as before` : `${before}, now ${after}`}`);
  }
  lines.push(...evidence.contract.map((change) => `contract: ${change}`));
  if (evidence.callers.length > 0) {
    lines.push(`callers to follow: ${few(evidence.callers)}`);
  }
  return lines;
}

export function few(items: string[], most = 3): string {
  const shown = items.slice(0, most).join(", ");
  return items.length > most ? `${shown} and ${items.length - most} more` : shown;
}
