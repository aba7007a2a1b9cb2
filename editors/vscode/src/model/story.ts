/** What is known of one run, from its events: the one state that tree, picture and status bar show. */

import type {
  Ending,
  Event,
  Evidence,
  IntentParams,
  Limits,
  Outcome,
  StopReason,
  TestCase,
  Verdict,
} from "./protocol.ts";
import { isAgent, partyKey } from "./symbol.ts";

export type AgentState = "working" | "waiting" | "done" | "gave_up";

export interface Agent {
  key: string;
  state: AgentState;
  /** What it is doing, in few words. */
  doing: string;
  /** When it began to do that, in milliseconds since the run began. */
  since: number;
  /** What it read, searched and ran, the newest last. */
  looked: string[];
  turns: number;
  woken: string;
  summary: string;
}

export type ProposalState =
  | "checking"
  | "refused"
  | "waiting"
  | "accepted"
  | "rejected"
  | "steered"
  | "applied"
  | "conflicted"
  | "undone"
  | "dropped";

export interface Proposal {
  number: number;
  agent: string;
  symbol: string;
  symbols: string[];
  reason: string;
  revises?: number;
  /** Those that are answered together with it. */
  with: number[];
  state: ProposalState;
  /** Why it was sent back, or how it was to change. */
  note: string;
  evidence?: Evidence;
  /** How often its review was asked for: once more for each version that the user edited. */
  asked: number;
  /** The cases of its last test run. */
  cases: TestCase[];
}

export type MessageKind = "question" | "change_request" | "follow_up";

export interface Message {
  kind: MessageKind;
  from: string;
  to: string;
  text: string;
  question?: number;
  answer?: string;
  /** Whether it still waits for its answer. */
  open: boolean;
}

export interface Intent {
  symbol: string;
  intent: string;
  reason: string;
}

export interface Used {
  calls: number;
  tokens: number;
  dollars: number;
  /** Calls whose price is unknown; undefined while the run goes. */
  unpriced?: number;
}

export interface End {
  reason: StopReason;
  summary: string;
  applied: string[];
  /** Null of a server that does not say it. */
  ending: Ending | null;
}

/** How many lookups of an agent are kept. */
const LOOKED = 20;
const LEAVE = "waits for leave to write";

export class Story {
  readonly id: string;
  task: string;
  replayed = false;
  limits: Limits | null = null;
  readonly agents = new Map<string, Agent>();
  readonly proposals = new Map<number, Proposal>();
  readonly messages: Message[] = [];
  readonly intents = new Map<string, Intent>();
  readonly used: Used = { calls: 0, tokens: 0, dollars: 0 };
  /** Trouble worth telling, newest last. */
  readonly notes: string[] = [];
  phase = "starting";
  end: End | null = null;
  interrupted = false;
  /** It ended before this window, or its server, was there: history. */
  past = false;
  #last = -1;
  /** The time of the event that is taken, in milliseconds since the run began. */
  #now = 0;
  /** When the run began, by the clock of this window; null before the first event. */
  #began: number | null = null;

  constructor(id: string, task: string) {
    this.id = id;
    this.task = task;
  }

  /** Takes the next event. One that was seen before changes nothing. */
  take(seq: number, event: Event, atMs = 0, now = Date.now()): boolean {
    if (seq <= this.#last) {
      return false;
    }
    this.#last = seq;
    this.#now = atMs;
    // Events that are told again come late: the earliest beginning is the nearest to the truth.
    this.#began = Math.min(this.#began ?? Number.POSITIVE_INFINITY, now - atMs);
    this.#apply(event);
    return true;
  }

  intend({ symbol, intent, reason }: IntentParams): void {
    this.intents.set(symbol, { symbol, intent, reason });
    this.#agent(symbol, "waiting", LEAVE);
  }

  markUndone(number: number): void {
    this.#mark(number, "undone", "");
  }

  /** What became of proposals, as the server says it: what a run left waiting outlives it. */
  settle(states: { proposal: number; state: ProposalState }[]): void {
    for (const { proposal, state } of states) {
      if (this.proposals.get(proposal)?.state !== state) {
        this.#mark(proposal, state, "");
      }
    }
  }

  /** For how many seconds an agent does what it does. */
  seconds(agent: Agent, now = Date.now()): number {
    return this.#began === null ? 0 : Math.max(0, Math.floor((now - this.#began - agent.since) / 1000));
  }

  /** The run of an earlier server: nobody works on it any more, but what waits can be decided. */
  interrupt(): void {
    this.interrupted = true;
    this.#rest("stopped with the server");
  }

  get running(): boolean {
    return this.end === null && !this.interrupted;
  }

  /** Proposals that wait for the user. A set that is answered together counts once. */
  get waiting(): Proposal[] {
    return [...this.proposals.values()].filter((proposal) => proposal.state === "waiting");
  }

  get working(): Agent[] {
    return [...this.agents.values()].filter((agent) => agent.state === "working");
  }

  #apply(event: Event): void {
    switch (event.event) {
      case "run_started":
        this.task = event.task;
        this.replayed = event.replayed;
        this.limits = event.limits;
        this.phase = "running the tests as they are";
        return;
      case "tests_run":
        return this.#testsRun(event);
      case "located":
        this.phase = "choosing where to begin";
        return;
      case "scout_picked":
        this.phase = "agents at work";
        return;
      case "turn_started":
        // One who answers a question is asked a model as well, and is not at work for it.
        return this.#thinks(partyKey(event.agent));
      case "turn_finished": {
        const agent = this.agents.get(partyKey(event.agent));
        if (agent) {
          agent.turns++;
        }
        this.used.calls += event.calls;
        this.used.tokens += event.usage.prompt + event.usage.output;
        this.used.dollars += event.cost;
        return;
      }
      case "turn_failed":
        this.notes.push(`${partyKey(event.agent)}: ${event.error}`);
        return;
      case "tool_used":
        return this.#looked(partyKey(event.agent), toolWords(event.tool, event.argument));
      case "agent_woken":
      case "agent_finished":
      case "intent_stated":
      case "intent_reviewed":
        return this.#work(event);
      case "asked":
      case "answered":
      case "change_requested":
      case "change_declined":
      case "followed_up":
        return this.#talk(event);
      case "proposal_made":
      case "proposal_refused":
      case "proposal_checked":
      case "review_asked":
      case "proposal_reviewed":
      case "proposal_applied":
      case "proposal_conflicted":
      case "proposal_not_applied":
      case "proposal_undone":
        return this.#propose(event);
      case "run_finished":
        return this.#finish(event);
      default:
        // The server's list of events may grow; what is not shown passes by.
        return;
    }
  }

  /** What was looked up is at hand when the next turn begins: it stays visible while the agent thinks. */
  #looked(key: string, words: string): void {
    if (key === "scout" && this.running) {
      this.phase = `choosing where to begin: ${words}`;
    }
    this.#doing(key, words);
    const agent = this.agents.get(key);
    if (agent) {
      agent.looked = [...agent.looked, words].slice(-LOOKED);
    }
  }

  #work(
    event: Extract<Event, { event: "agent_woken" | "agent_finished" | "intent_stated" | "intent_reviewed" }>,
  ): void {
    const key = partyKey(event.agent);
    switch (event.event) {
      case "agent_woken":
        this.#agent(key, "working", "begins").woken = causeWords(event.cause);
        return;
      case "agent_finished": {
        const ended = outcomeWords(event.outcome);
        this.#agent(key, ended.state, ended.words).summary = event.summary;
        this.intents.delete(key);
        return;
      }
      case "intent_stated":
        this.#doing(key, "says what it means to do");
        return;
      case "intent_reviewed":
        this.intents.delete(key);
        this.#agent(key, "working", event.verdict.verdict === "accept" ? "writes" : "thinks again");
        return;
    }
  }

  #talk(
    event: Extract<Event, { event: "asked" | "answered" | "change_requested" | "change_declined" | "followed_up" }>,
  ): void {
    switch (event.event) {
      case "asked": {
        const [from, to] = [partyKey(event.from), partyKey(event.to)];
        const { question, text } = event;
        this.messages.push({ kind: "question", from, to, text, question, open: true });
        this.#doing(from, `asks ${to}`);
        return;
      }
      case "answered": {
        const asked = this.messages.find((message) => message.question === event.question);
        if (asked) {
          asked.answer = event.text;
          asked.open = false;
        }
        return;
      }
      case "change_requested":
        this.messages.push({
          kind: "change_request",
          from: partyKey(event.from),
          to: partyKey(event.to),
          text: event.reason,
          open: true,
        });
        return;
      case "change_declined":
        this.#settleRequests(partyKey(event.by), `declined: ${event.reason}`);
        return;
      case "followed_up":
        for (const to of event.to) {
          const text = event.changes.join("; ");
          this.messages.push({ kind: "follow_up", from: event.changed, to, text, open: true });
        }
        return;
    }
  }

  #propose(event: Extract<Event, { event: `proposal_${string}` | "review_asked" }>): void {
    switch (event.event) {
      case "proposal_made": {
        const agent = partyKey(event.agent);
        const { proposal: number, symbols, reason, revises } = event;
        const own = symbols.includes(agent) ? agent : (symbols.at(-1) ?? agent);
        const fresh: Proposal = {
          number,
          agent,
          symbol: own,
          symbols,
          reason,
          with: [],
          state: "checking",
          note: "",
          asked: 0,
          cases: [],
          ...(revises === undefined ? {} : { revises }),
        };
        this.proposals.set(number, fresh);
        this.#agent(agent, "working", `proposal #${number} is checked`);
        return;
      }
      case "proposal_refused":
        this.#refuse(partyKey(event.agent), event.why);
        return;
      case "proposal_checked":
        this.#proposal(event.proposal, (proposal) => {
          proposal.evidence = event.evidence;
        });
        return;
      case "review_asked":
        return this.#review(event);
      case "proposal_edited":
        return this.#edited(event.proposal);
      case "proposal_reviewed":
        return this.#reviewed(event.proposal, event.verdict);
      case "proposal_applied":
        this.#mark(event.proposal, "applied", "");
        this.#proposal(event.proposal, (proposal) => this.#settleRequests(proposal.agent, "done"));
        return;
      case "proposal_conflicted":
        this.#mark(event.proposal, "conflicted", event.why);
        return;
      case "proposal_not_applied":
        this.#mark(event.proposal, "dropped", event.why);
        return;
      case "proposal_undone":
        this.#mark(event.proposal, "undone", "");
        return;
    }
  }

  #review(event: Extract<Event, { event: "review_asked" }>): void {
    const group = [event.proposal, ...(event.with ?? [])];
    for (const number of group) {
      this.#mark(number, "waiting", "");
      this.#proposal(number, (proposal) => {
        proposal.with = group.filter((other) => other !== number);
        proposal.asked += 1;
      });
    }
    this.#proposal(event.proposal, (proposal) => {
      proposal.evidence = event.evidence;
      proposal.reason = event.reason;
      proposal.symbol = event.symbol;
    });
    for (const number of group) {
      this.#proposal(number, (proposal) => {
        this.#agent(proposal.agent, "waiting", `proposal #${event.proposal} waits for you`);
      });
    }
  }

  /** The set is checked again, with what the user made of one of its proposals. */
  #edited(number: number): void {
    for (const one of [number, ...(this.proposals.get(number)?.with ?? [])]) {
      if (this.proposals.get(one)?.state === "waiting") {
        this.#mark(one, "checking", "");
        this.#proposal(one, (proposal) => this.#agent(proposal.agent, "working", "your version is checked"));
      }
    }
  }

  #reviewed(number: number, verdict: Verdict): void {
    switch (verdict.verdict) {
      case "accept":
        // Of the rest of its set the server says the same a moment later.
        for (const one of [number, ...(this.proposals.get(number)?.with ?? [])]) {
          this.#mark(one, "accepted", "");
        }
        break;
      case "reject":
        this.#mark(number, "rejected", verdict.reason);
        break;
      case "steer":
        this.#mark(number, "steered", verdict.text);
        break;
    }
    this.#proposal(number, (proposal) => this.#agent(proposal.agent, "working", reviewedWords(verdict)));
  }

  #testsRun(event: Extract<Event, { event: "tests_run" }>): void {
    if (event.phase === "proposal" && event.proposal !== null) {
      this.#proposal(event.proposal, (proposal) => {
        proposal.cases = event.report.cases;
      });
    }
    if (event.phase === "settling") {
      this.phase = "running the tests once more";
    }
  }

  #finish(event: Extract<Event, { event: "run_finished" }>): void {
    this.end = {
      reason: event.stop_reason,
      summary: event.summary,
      applied: event.applied,
      ending: event.ending ?? null,
    };
    const { calls, prompt_tokens, output_tokens, dollars, unpriced_calls: unpriced = 0 } = event.spent;
    Object.assign(this.used, { calls, tokens: prompt_tokens + output_tokens, dollars, unpriced });
    this.#rest("stopped");
    for (const proposal of this.proposals.values()) {
      if (proposal.state === "waiting" || proposal.state === "checking" || proposal.state === "accepted") {
        proposal.state = "dropped";
      }
    }
  }

  #rest(doing: string): void {
    this.intents.clear();
    for (const agent of this.agents.values()) {
      if (agent.state === "working" || agent.state === "waiting") {
        agent.state = "done";
        agent.doing = doing;
      }
    }
    for (const message of this.messages) {
      message.open = false;
    }
  }

  /** The refused proposal of an agent is its newest that is being checked; some are refused before they have a number. */
  #refuse(agent: string, why: string): void {
    const own = [...this.proposals.values()].filter((one) => one.agent === agent && one.state === "checking");
    const newest = own.at(-1);
    if (newest) {
      this.#mark(newest.number, "refused", why);
    }
    this.#agent(agent, "working", "mends a proposal that was sent back");
  }

  #settleRequests(by: string, answer: string): void {
    for (const message of this.messages) {
      if (message.to === by && message.kind !== "question" && message.open) {
        message.open = false;
        message.answer = answer;
      }
    }
  }

  #mark(number: number, state: ProposalState, note: string): void {
    this.#proposal(number, (proposal) => {
      proposal.state = state;
      proposal.note = note;
    });
  }

  #proposal(number: number, change: (proposal: Proposal) => void): void {
    const proposal = this.proposals.get(number);
    if (proposal) {
      change(proposal);
    }
  }

  #doing(key: string, doing: string): void {
    const agent = this.agents.get(key);
    if (agent?.state === "working") {
      this.#does(agent, doing);
    }
  }

  #thinks(key: string): void {
    const last = this.agents.get(key)?.looked.at(-1);
    this.#doing(key, last === undefined ? "thinks" : `thinks; last ${last}`);
  }

  #does(agent: Agent, doing: string): void {
    agent.doing = doing;
    agent.since = this.#now;
  }

  /** The agent of a key. Only owners of symbols and the single agent are kept; scout and proxy pass by. */
  #agent(key: string, state: AgentState, doing: string): Agent {
    const known = this.agents.get(key);
    const agent = known ?? { key, state, doing, since: this.#now, looked: [], turns: 0, woken: "", summary: "" };
    if (!known && (isAgent(key) || key === "solo")) {
      this.agents.set(key, agent);
    }
    if (this.interrupted) {
      agent.state = "done";
      agent.doing = "stopped with the server";
      return agent;
    }
    // An intent and the events before it come on two ways: it waits until it is answered.
    const held = state === "working" && this.intents.has(key);
    agent.state = held ? "waiting" : state;
    this.#does(agent, held ? LEAVE : doing);
    return agent;
  }
}

function causeWords(cause: Extract<Event, { event: "agent_woken" }>["cause"]): string {
  switch (cause.cause) {
    case "picked":
      return cause.why;
    case "change_request":
      return `${partyKey(cause.from)} asks for a change: ${cause.reason}`;
    case "follow_up":
      return `${cause.changed} changed: ${cause.changes.join("; ")}`;
    case "failed_tests":
      return `tests fail: ${cause.message}`;
    case "steered":
      return `you said: ${cause.text}`;
    case "declined":
      return `${partyKey(cause.by)} declined: ${cause.reason}`;
  }
}

function outcomeWords(outcome: Outcome): { state: AgentState; words: string } {
  switch (outcome.outcome) {
    case "changed":
      return { state: "done", words: "done" };
    case "nothing_to_change":
      return { state: "done", words: "nothing to change" };
    case "gave_up":
      return { state: "gave_up", words: `gave up: ${outcome.why}` };
  }
}

function reviewedWords(verdict: Verdict): string {
  switch (verdict.verdict) {
    case "accept":
      return "accepted";
    case "reject":
      return "thinks again: rejected";
    case "steer":
      return "thinks again: steered";
  }
}

function toolWords(tool: string, argument: string): string {
  const words: Record<string, string> = {
    read: "reads",
    outline: "reads the outline of",
    search: "searches",
    definition: "looks for the definition of",
    references: "looks for what uses",
    diagnostics: "looks at diagnostics of",
    run_tests: "runs tests",
    tests: "runs tests",
    try: "tries",
    ask: "asked",
    request_change: "requests a change of",
    propose: "proposes",
    intent: "says what it means to do",
  };
  const verb = words[tool] ?? tool;
  const long = tool === "intent" || tool === "propose" ? "" : argument;
  return long ? `${verb} ${long}` : verb;
}
