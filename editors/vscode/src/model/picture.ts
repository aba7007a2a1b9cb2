/** The picture of a run: what a view without any knowledge of runs can draw. */

import type { Message, Story } from "./story.ts";
import { fileOf, isAgent, nameOf, partyName, shortName } from "./symbol.ts";
import { endSentence, ledgerLine, ledgerLines, ledgerShare, proposalWord, statusLine } from "./words.ts";

export interface Node {
  key: string;
  name: string;
  kind: string;
  state: string;
  doing: string;
  /** All of it in one sentence, for a screen reader and as a tooltip. */
  label: string;
  /** The proposal that waits here, if any. */
  proposal?: number;
}

export interface Group {
  file: string;
  nodes: Node[];
}

export interface Edge {
  id: string;
  from: string;
  to: string;
  kind: "question" | "answer" | "change" | "follow" | "proposal";
  /** Something is on its way. */
  live: boolean;
  label: string;
}

export interface Line {
  who: string;
  kind: Edge["kind"];
  text: string;
  answer?: string;
}

export interface Picture {
  run: string;
  task: string;
  running: boolean;
  replayed: boolean;
  status: string;
  ledger: string;
  ledgerParts: string[];
  share: number;
  ended: string;
  you: Node;
  groups: Group[];
  edges: Edge[];
  /** What was said, newest first. */
  talk: Line[];
}

export function picture(story: Story): Picture {
  const waiting = story.waiting.length + story.intents.size;
  const doing = waiting > 0 ? `${waiting} to review` : story.running ? "watching" : "";
  const you: Node = {
    key: "user",
    name: "You",
    kind: "person",
    state: waiting > 0 ? "waiting" : "idle",
    doing,
    label: `You. ${doing}`,
  };
  return {
    run: story.id,
    task: story.task,
    running: story.running,
    replayed: story.replayed,
    status: statusLine(story),
    ledger: ledgerLine(story.used),
    ledgerParts: ledgerLines(story.used, story.limits),
    share: ledgerShare(story.used, story.limits),
    ended: endSentence(story),
    you,
    groups: groups(story),
    edges: edges(story),
    talk: talk(story),
  };
}

/** Agents by their files, as they were woken; those who are only asked as well. */
function groups(story: Story): Group[] {
  const byFile = new Map<string, Node[]>();
  const add = (node: Node) => {
    const file = isAgent(node.key) ? fileOf(node.key) : "";
    byFile.set(file, [...(byFile.get(file) ?? []), node]);
  };
  for (const key of parties(story)) {
    add(node(story, key));
  }
  return [...byFile].map(([file, nodes]) => ({ file, nodes }));
}

function parties(story: Story): string[] {
  const keys = [...story.agents.keys()];
  const spoken = story.messages.flatMap((message) => [message.from, message.to]);
  return [...new Set([...keys, ...spoken.filter((key) => isAgent(key) || key === "scout" || key === "starling")])];
}

function node(story: Story, key: string): Node {
  const agent = story.agents.get(key);
  const own = [...story.proposals.values()].filter((proposal) => proposal.agent === key);
  const newest = own.at(-1);
  const doing = agent?.doing ?? "was asked";
  const shown = newest && agent?.state !== "working" ? `#${newest.number} ${proposalWord(newest.state)}` : doing;
  const state = newest?.state === "applied" && agent?.state === "done" ? "changed" : (agent?.state ?? "idle");
  const waits = own.find((proposal) => proposal.state === "waiting");
  const kind = isAgent(key) && nameOf(key) === "" ? "module" : "symbol";
  return {
    key,
    name: isAgent(key) ? shortName(key) : partyName(key),
    kind,
    state,
    doing: shown,
    label: `${key}. ${shown}. ${agent?.summary ?? ""}`.trim(),
    ...(waits ? { proposal: waits.number } : {}),
  };
}

function edges(story: Story): Edge[] {
  const found = new Map<string, Edge>();
  story.messages.forEach((message, index) => {
    const edge = edgeOf(message, index);
    // The newest of the same kind between the same two stands for all.
    found.set(edge.id, edge);
  });
  for (const proposal of story.proposals.values()) {
    if (proposal.state === "waiting") {
      const id = `proposal ${proposal.agent}`;
      const label = `proposal #${proposal.number}`;
      found.set(id, { id, from: proposal.agent, to: "user", kind: "proposal", live: true, label });
    }
  }
  for (const intent of story.intents.values()) {
    const id = `intent ${intent.symbol}`;
    found.set(id, { id, from: intent.symbol, to: "user", kind: "proposal", live: true, label: "intent" });
  }
  return [...found.values()];
}

function edgeOf({ kind, from, to, open, answer }: Message, index: number): Edge {
  switch (kind) {
    case "question": {
      const id = `question ${from} ${to}`;
      return open
        ? { id, from, to, kind: "question", live: true, label: "asks" }
        : { id, from: to, to: from, kind: "answer", live: false, label: answer === undefined ? "" : "answered" };
    }
    case "change_request":
      return { id: `change ${from} ${to}`, from, to, kind: "change", live: open, label: "requests a change" };
    case "follow_up":
      return { id: `follow ${from} ${to} ${index}`, from, to, kind: "follow", live: open, label: "follows up" };
  }
}

function talk(story: Story): Line[] {
  const kinds = { question: "question", change_request: "change", follow_up: "follow" } as const;
  const lines = story.messages.map((message): Line => {
    const who = `${partyName(message.from)} → ${partyName(message.to)}`;
    const line: Line = { who, kind: kinds[message.kind], text: message.text };
    return message.answer === undefined ? line : { ...line, answer: message.answer };
  });
  return lines.reverse();
}
