/** All runs of this window, kept up to date from what the server says. */

import * as vscode from "vscode";
import type { DownloadParams, EventParams, IntentParams, UndoneParams } from "../model/protocol.ts";
import { type Proposal, type ProposalState, Story } from "../model/story.ts";
import { downloadPhase } from "../model/remedy.ts";
import type { Server } from "./server.ts";

/** Changes are gathered for so long before views hear of them. */
const GATHER_MS = 60;
/** After so long the events of a run that is told again have come. */
const COMPARE_MS = 300;

/** `starling/state`, as far as it is needed. */
interface State {
  runs: {
    run: string;
    task: string;
    restored: boolean;
    stage: "opening" | "going" | "ended";
    intents: IntentParams[];
    proposals: { proposal: number; state: ProposalState }[];
  }[];
}

export class Runs implements vscode.Disposable {
  readonly #stories = new Map<string, Story>();
  /** By the runs: the address of the folder of each. */
  readonly #homes = new Map<string, string>();
  /** Runs that the user does not want to see any more: a server may still know them. */
  readonly #forgotten = new Set<string>();
  /** Events of runs that nothing is known of yet: whether a run is of an earlier server is asked first. */
  readonly #held = new Map<string, EventParams[]>();
  readonly #server: Server;
  readonly #listening: vscode.Disposable;
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
    server.on<DownloadParams>("starling/download", ({ run, bytes, total }) => {
      this.#story(run).phase = downloadPhase(bytes, total);
      this.#soon();
    });
    server.onState(() => this.#soon());
    server.onRunning((folder) => void this.#attach(folder));
    this.#listening = vscode.workspace.onDidChangeWorkspaceFolders(({ removed }) => {
      removed.forEach((folder) => this.#forget(folder));
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

  /** The folder that a run is about. */
  folderOf(run: string): vscode.WorkspaceFolder | undefined {
    return this.#server.folderOf(run);
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
        this.#forgotten.add(run);
      }
    }
    void this.#server.everywhere("workspace/executeCommand", { command: "starling.forget", arguments: [{}] });
    this.#soon();
  }

  dispose(): void {
    this.#listening.dispose();
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
      this.#homes.set(run, this.#server.folderOf(run)?.uri.toString() ?? "");
    }
    return story;
  }

  #take(params: EventParams): void {
    if (this.#forgotten.has(params.run)) {
      return;
    }
    const held = this.#held.get(params.run);
    if (held) {
      held.push(params);
      return;
    }
    if (!this.#stories.has(params.run)) {
      this.#held.set(params.run, [params]);
      void this.#meet(params.run);
      return;
    }
    const story = this.#story(params.run);
    if (story.take(params.seq, params.event, params.at_ms)) {
      this.#happened.fire({ story, params });
      this.#soon();
    }
  }

  /** Takes the events of a run that was unknown: it may be the run of an earlier server, told again. */
  async #meet(run: string): Promise<void> {
    await this.#compare();
    this.#unknown ??= setTimeout(() => {
      this.#unknown = null;
      void this.#compare();
    }, COMPARE_MS);
    const held = this.#held.get(run) ?? [];
    this.#held.delete(run);
    this.#story(run);
    held.forEach((params) => this.#take(params));
  }

  #undone(params: UndoneParams): void {
    if (params.error !== undefined) {
      const undone = params.proposals.length > 0 ? "Not everything was undone" : "Nothing was undone";
      void vscode.window.showWarningMessage(`${undone}: ${params.error}`);
    }
    if (params.warning !== undefined) {
      void vscode.window.showWarningMessage(`Undone: ${params.warning}`);
    }
    for (const number of params.proposals) {
      this.#stories.get(params.run)?.markUndone(number);
    }
    this.#soon();
  }

  /** What went on before this window was there; what an earlier server knew is gone with it. */
  async #attach(folder: vscode.WorkspaceFolder): Promise<void> {
    this.#forget(folder);
    const runs = (await this.#known(folder)).filter(({ run }) => !this.#forgotten.has(run));
    for (const { run, restored, stage } of runs) {
      const { events } = await this.#server.request<{ events: EventParams[] }>("starling/events", { run });
      const story = this.#story(run);
      story.past = stage === "ended" && !restored;
      if (restored) {
        story.interrupt();
      }
      for (const { seq, event, at_ms } of events) {
        story.take(seq, event, at_ms);
      }
    }
    await this.#compare();
  }

  /** What events do not tell: intents that wait, and what became of a run whose server is gone. */
  async #compare(): Promise<void> {
    const known = await Promise.all(this.#server.folders.map((folder) => this.#known(folder)));
    for (const { run, task, restored, intents, proposals } of known.flat()) {
      if (this.#forgotten.has(run)) {
        continue;
      }
      const story = this.#story(run);
      story.task ||= task;
      story.settle(proposals);
      intents.forEach((intent) => story.intend({ ...intent, run }));
      if (restored) {
        story.interrupt();
      }
    }
    this.#soon();
  }

  async #known(folder: vscode.WorkspaceFolder): Promise<State["runs"]> {
    try {
      const { runs } = await this.#server.inFolder<State>(folder, "starling/state");
      this.#server.learn(runs, folder);
      return runs;
    } catch (error) {
      // A server without this request has no runs of before.
      this.#server.log.debug(`starling/state: ${error}`);
      return [];
    }
  }

  #forget({ uri }: vscode.WorkspaceFolder): void {
    for (const [run, home] of this.#homes) {
      if (home === uri.toString()) {
        this.#homes.delete(run);
        this.#stories.delete(run);
      }
    }
  }

  #soon(): void {
    this.#pending ??= setTimeout(() => {
      this.#pending = null;
      this.#changed.fire();
    }, GATHER_MS);
  }
}
