/** All runs of this window, kept up to date from what the server says. */

import * as vscode from "vscode";
import type { EventParams, IntentParams, UndoneParams } from "../model/protocol.ts";
import { type Proposal, type ProposalState, Story } from "../model/story.ts";
import type { Server } from "./server.ts";

/** Changes are gathered for so long before views hear of them. */
const GATHER_MS = 60;
/** After so long the events of a run that is told again have come. */
const COMPARE_MS = 300;

/** `starling/state`, as far as it is needed. */
interface State {
  runs: {
    run: string;
    restored: boolean;
    intents: IntentParams[];
    proposals: { proposal: number; state: ProposalState }[];
  }[];
}

export class Runs implements vscode.Disposable {
  readonly #stories = new Map<string, Story>();
  readonly #server: Server;
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #happened = new vscode.EventEmitter<{ story: Story; params: EventParams }>();
  #pending: NodeJS.Timeout | null = null;
  #unknown: NodeJS.Timeout | null = null;

  constructor(server: Server) {
    this.#server = server;
    server.on<EventParams>("starling/event", (params) => this.#take(params));
    server.on<IntentParams>("starling/intent", (params) => {
      this.#story(params.run).intend(params);
      this.#soon();
    });
    server.on<UndoneParams>("starling/undone", (params) => this.#undone(params));
    server.onState((state) => {
      if (state.kind === "running") {
        void this.#attach();
      }
      this.#soon();
    });
  }

  /** Something changed; gathered. */
  get onChange(): vscode.Event<void> {
    return this.#changed.event;
  }

  /** Each event as it comes. */
  get onEvent(): vscode.Event<{ story: Story; params: EventParams }> {
    return this.#happened.event;
  }

  /** Newest first. */
  get all(): Story[] {
    return [...this.#stories.values()].reverse();
  }

  get newest(): Story | undefined {
    return this.all[0];
  }

  get(run: string): Story | undefined {
    return this.#stories.get(run);
  }

  proposal(run: string, number: number): Proposal | undefined {
    return this.#stories.get(run)?.proposals.get(number);
  }

  /** All proposals that wait, oldest first. */
  get waiting(): { story: Story; proposal: Proposal }[] {
    return [...this.#stories.values()].flatMap((story) => story.waiting.map((proposal) => ({ story, proposal })));
  }

  /** Forgets runs that have ended. */
  clear(): void {
    for (const [run, story] of this.#stories) {
      if (!story.running && story.waiting.length === 0) {
        this.#stories.delete(run);
      }
    }
    this.#soon();
  }

  dispose(): void {
    clearTimeout(this.#pending ?? undefined);
    clearTimeout(this.#unknown ?? undefined);
    this.#changed.dispose();
    this.#happened.dispose();
  }

  #story(run: string): Story {
    const known = this.#stories.get(run);
    const story = known ?? new Story(run, "");
    if (!known) {
      this.#stories.set(run, story);
    }
    return story;
  }

  #take(params: EventParams): void {
    if (!this.#stories.has(params.run)) {
      // It may be the run of an earlier server, told again.
      this.#unknown ??= setTimeout(() => {
        this.#unknown = null;
        void this.#compare();
      }, COMPARE_MS);
    }
    const story = this.#story(params.run);
    if (story.take(params.seq, params.event)) {
      this.#happened.fire({ story, params });
      this.#soon();
    }
  }

  #undone(params: UndoneParams): void {
    if (params.error !== undefined) {
      void vscode.window.showWarningMessage(`Nothing was undone: ${params.error}`);
    }
    const story = this.#story(params.run);
    for (const number of params.proposals) {
      story.markUndone(number);
    }
    this.#soon();
  }

  /** What went on before this window was there; what an earlier server knew is gone with it. */
  async #attach(): Promise<void> {
    this.#stories.clear();
    for (const { run } of await this.#known()) {
      const { events } = await this.#server.request<{ events: EventParams[] }>("starling/events", { run });
      const story = this.#story(run);
      for (const { seq, event } of events) {
        story.take(seq, event);
      }
    }
    await this.#compare();
  }

  /** What events do not tell: intents that wait, and what became of a run whose server is gone. */
  async #compare(): Promise<void> {
    for (const { run, restored, intents, proposals } of await this.#known()) {
      const story = this.#story(run);
      story.settle(proposals);
      intents.forEach((intent) => story.intend({ ...intent, run }));
      if (restored) {
        story.interrupt();
      }
    }
    this.#soon();
  }

  async #known(): Promise<State["runs"]> {
    try {
      return (await this.#server.request<State>("starling/state")).runs;
    } catch (error) {
      // A server without this request has no runs of before.
      this.#server.log.debug(`starling/state: ${error}`);
      return [];
    }
  }

  #soon(): void {
    this.#pending ??= setTimeout(() => {
      this.#pending = null;
      this.#changed.fire();
    }, GATHER_MS);
  }
}
