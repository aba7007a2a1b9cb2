/** The tree of runs, as values: what it says and what can be done with each line. */

import type { TestCase } from "./protocol.ts";
import type { Agent, Intent, Message, Proposal, ProposalState, Story } from "./story.ts";
import { fileOf, isAgent, partyName, shortName } from "./symbol.ts";
import { count, endSentence, evidenceLines, proposalWord, statusLine } from "./words.ts";

export interface Row {
  /** Stable while the run lasts. */
  id: string;
  label: string;
  description: string;
  tooltip: string;
  /** The name of one of the editor's icons, with a theme colour where it says something. */
  icon: string;
  colour?: string;
  /** What the row is, for the menus. */
  context: string;
  open: "closed" | "open" | "leaf";
  target: Target;
  children: Row[];
}

/** What a command on the row is about. */
export interface Target {
  run: string;
  proposal?: number;
  /** The version of the proposal, or the intent, that is on the screen, where that is known. */
  version?: number;
  symbol?: string;
  intent?: string;
  /** A click opens this. */
  shows?: "diff" | "symbol";
}

type Fixed = Pick<Row, "id" | "label" | "context" | "target">;

function row(fixed: Fixed, more: Partial<Row> = {}): Row {
  const children = more.children ?? [];
  return {
    description: "",
    tooltip: fixed.label,
    icon: "",
    open: children.length > 0 ? "closed" : "leaf",
    ...more,
    ...fixed,
    children,
  };
}

export function outline(story: Story): Row {
  const run = story.id;
  const sections = [review(story), agents(story), talk(story), decided(story)];
  const children = sections.filter((section) => section !== null);
  if (!story.running) {
    children.unshift(ended(story));
  }
  const replayed = story.replayed ? "recorded answers · " : "";
  return row(
    {
      id: run,
      label: story.task || "Opening the project",
      context: story.running ? "run-going" : "run-ended",
      target: { run },
    },
    {
      description: replayed + statusLine(story),
      tooltip: `${story.task}\n\n${statusLine(story)}`,
      icon: story.running ? "sync~spin" : runIcon(story),
      open: "open",
      children,
    },
  );
}

function runIcon(story: Story): string {
  if (story.interrupted) {
    return "debug-disconnect";
  }
  switch (story.end?.reason.reason) {
    case "settled":
      return "pass";
    case "cancelled":
      return "circle-slash";
    case "nothing_changed":
      return "circle-outline";
    default:
      return "warning";
  }
}

function ended(story: Story): Row {
  const said = endSentence(story);
  const headline = story.end?.ending?.headline ?? "";
  const tooltip = [said, headline, story.end?.summary ?? ""].filter((line) => line !== "").join("\n\n");
  return row(
    { id: `${story.id}/end`, label: said, context: "end", target: { run: story.id } },
    { icon: "info", description: headline, tooltip },
  );
}

function section(story: Story, name: string, label: string, rows: Row[], open: Row["open"]): Row | null {
  if (rows.length === 0) {
    return null;
  }
  const fixed = { id: `${story.id}/${name}`, label, context: name, target: { run: story.id } };
  return row(fixed, { description: `${rows.length}`, open, children: rows });
}

function review(story: Story): Row | null {
  const intents = [...story.intents.values()].map((intent) => intentRow(story, intent));
  const waiting = story.waiting.map((proposal) => proposalRow(story, proposal, "review"));
  return section(story, "review", "To review", [...intents, ...waiting], "open");
}

function decided(story: Story): Row | null {
  const past = [...story.proposals.values()].filter((proposal) => proposal.state !== "waiting").reverse();
  const rows = past.map((proposal) => proposalRow(story, proposal, "past"));
  return section(story, "past", "Proposals", rows, "open");
}

function agents(story: Story): Row | null {
  const rows = [...story.agents.values()].map((agent) => agentRow(story, agent));
  return section(story, "agents", "Agents", rows, story.running ? "open" : "closed");
}

function talk(story: Story): Row | null {
  const rows = story.messages.map((message, index) => messageRow(story, message, index));
  return section(story, "talk", "Questions and requests", rows, "closed");
}

function intentRow(story: Story, { symbol, intent, reason }: Intent): Row {
  return row(
    {
      id: `${story.id}/intent/${symbol}`,
      label: shortName(symbol),
      context: "intent",
      target: { run: story.id, symbol },
    },
    {
      description: `means to: ${intent}`,
      tooltip: `${symbol} means to:\n${intent}\n\nWhy: ${reason}`,
      icon: "comment-discussion",
      colour: "charts.yellow",
    },
  );
}

function proposalRow(story: Story, proposal: Proposal, where: "review" | "past"): Row {
  const { number, symbol, state, reason, evidence, note } = proposal;
  const look = proposalLook(state);
  const others = proposal.with.map((one) => `#${one}`).join(", ");
  const set = state === "waiting" && others !== "" ? ` with ${others}` : "";
  const parts = [`${proposalWord(state)}${set}`, ...(note ? [note] : [])];
  const facts = evidence ? evidenceLines(evidence) : [];
  const lines = [reason, ...facts].map((text, index) =>
    row(
      { id: `${story.id}/${where}/${number}/${index}`, label: text, context: "fact", target: { run: story.id } },
      { icon: index === 0 ? "quote" : factIcon(text) },
    ),
  );
  return row(
    {
      id: `${story.id}/${where}/${number}`,
      label: `#${number} ${shortName(symbol)}`,
      context: `proposal-${state}`,
      target: { run: story.id, proposal: number, symbol, shows: "diff" },
    },
    {
      description: `${parts.join(": ")} · ${fileOf(symbol)}`,
      tooltip: [`${symbol}: ${parts.join(": ")}`, "", reason, "", ...facts].join("\n"),
      children: lines,
      ...look,
    },
  );
}

function proposalLook(state: ProposalState): { icon: string; colour?: string } {
  switch (state) {
    case "checking":
      return { icon: "beaker" };
    case "waiting":
      return { icon: "git-pull-request", colour: "charts.yellow" };
    case "accepted":
    case "applied":
      return { icon: "pass-filled", colour: "charts.green" };
    case "rejected":
    case "refused":
      return { icon: "error", colour: "charts.red" };
    case "steered":
      return { icon: "reply" };
    case "conflicted":
      return { icon: "git-merge", colour: "charts.orange" };
    case "undone":
      return { icon: "discard" };
    case "dropped":
      return { icon: "circle-slash" };
  }
}

function factIcon(text: string): string {
  if (/\b(broken|still failing|only as the run changed|by what the command printed)\b/.test(text)) {
    return "warning";
  }
  return text.includes("unknown") ? "question" : "check";
}

/** Shorter times are not worth a word. */
const SECONDS = 3;

export function agentRow(story: Story, agent: Agent): Row {
  const looks = { working: "sync~spin", waiting: "watch", done: "check", gave_up: "close" };
  const name = isAgent(agent.key) ? shortName(agent.key) : partyName(agent.key);
  const notes = [agent.woken && `Woken: ${agent.woken}`, agent.summary].filter(Boolean);
  const seconds = agent.state === "working" ? story.seconds(agent) : 0;
  const doing = seconds < SECONDS ? agent.doing : `${seconds} s · ${agent.doing}`;
  const looked = agent.looked.map((text, index) =>
    row(
      { id: `${story.id}/agent/${agent.key}/${index}`, label: text, context: "fact", target: { run: story.id } },
      { icon: "search" },
    ),
  );
  const context = agent.state === "working" || agent.state === "waiting" ? "agent-working" : "agent-done";
  return row(
    {
      id: `${story.id}/agent/${agent.key}`,
      label: name,
      context,
      target: { run: story.id, symbol: agent.key, shows: "symbol" },
    },
    {
      description: `${doing} · ${fileOf(agent.key)}`,
      children: looked.reverse(),
      tooltip: [agent.key, agent.doing, count(agent.turns, "turn"), ...notes].join("\n"),
      icon: looks[agent.state],
    },
  );
}

function messageRow(story: Story, message: Message, index: number): Row {
  const icons = { question: "question", change_request: "request-changes", follow_up: "references" };
  const id = `${story.id}/talk/${index}`;
  const answer = message.answer === undefined ? [] : [message.answer];
  const children = [message.text, ...answer].map((text, line) =>
    row(
      { id: `${id}/${line}`, label: text, context: "fact", target: { run: story.id } },
      { icon: line === 0 ? "quote" : "reply" },
    ),
  );
  return row(
    {
      id,
      label: `${partyName(message.from)} → ${partyName(message.to)}`,
      context: "message",
      target: { run: story.id },
    },
    { description: message.text, tooltip: [message.text, ...answer].join("\n\n"), icon: icons[message.kind], children },
  );
}

/** A test by the parts of its id: pytest's `a.py::Class::test`, or unittest's `tests.module.Class.test`. */
export function testPath({ id }: TestCase): string[] {
  return id.includes("::") ? id.split("::") : dotted(id);
}

function dotted(id: string): string[] {
  const parts = id.split(".");
  const type = parts.findIndex((part) => /^[A-Z]/.test(part));
  return type > 0 ? [parts.slice(0, type).join("."), ...parts.slice(type)] : [id];
}
