/** The servers of this window, one in each folder, as one. */

import * as vscode from "vscode";
import { withModel } from "../model/arguments.ts";
import { bare, Homes } from "../model/route.ts";
import { Bridge } from "./bridge.ts";
import { Saver } from "./saver.ts";
import { type Handler, Session, type SessionState } from "./session.ts";
import { setting } from "./settings.ts";

export type ServerState = { kind: "off" } | { kind: "untrusted" } | { kind: "no_folder" } | SessionState;

/** The server's own commands, which lenses and actions name. */
const COMMANDS = [
  "run",
  "accept",
  "acceptAll",
  "reject",
  "steer",
  "edit",
  "cancel",
  "undo",
  "ask",
  "review",
  "diff",
  "why",
  "retry",
];

export class Server implements vscode.Disposable {
  readonly log: vscode.LogOutputChannel;
  readonly #context: vscode.ExtensionContext;
  readonly #keys: () => Promise<Record<string, string>>;
  readonly #changed = new vscode.EventEmitter<ServerState>();
  readonly #came = new vscode.EventEmitter<vscode.WorkspaceFolder>();
  readonly #lenses = new vscode.EventEmitter<void>();
  readonly #handlers = new Map<string, Handler>();
  readonly #saver: Saver;
  readonly #bridge = new Bridge();
  readonly #homes = new Homes();
  readonly #listening: vscode.Disposable[];
  /** By the addresses of their folders. */
  #sessions = new Map<string, Session>();
  #kind: "off" | "untrusted" | "no_folder" = "off";
  #turn = Promise.resolve();

  /** `keys` gives the environment variables that hold the user's keys. */
  constructor(context: vscode.ExtensionContext, keys: () => Promise<Record<string, string>>) {
    this.#context = context;
    this.#keys = keys;
    this.log = vscode.window.createOutputChannel("Starling", { log: true });
    this.#saver = new Saver(this.log);
    this.#listening = [
      vscode.workspace.onDidChangeWorkspaceFolders((change) => void this.#inTurn(() => this.#follow(change))),
      ...COMMANDS.map((name) =>
        vscode.commands.registerCommand(`starling.${name}`, (about: object = {}) =>
          this.execute(`starling.${name}`, about),
        ),
      ),
    ];
  }

  /** Fires when a server comes or goes. */
  get onState(): vscode.Event<ServerState> {
    return this.#changed.event;
  }

  /** Fires when lenses may be others than before. */
  get onLenses(): vscode.Event<void> {
    return this.#lenses.event;
  }

  /** Fires when the server of a folder is there. */
  get onRunning(): vscode.Event<vscode.WorkspaceFolder> {
    return this.#came.event;
  }

  /** The worst of all folders: what is told is what is to be mended. */
  get state(): ServerState {
    const states = [...this.#sessions.values()].map(({ state }) => state);
    const worst = ["missing", "failed", "starting", "running"].map((kind) => states.find((one) => one.kind === kind));
    return worst.find((one) => one !== undefined) ?? { kind: this.#kind };
  }

  /** The folders that have a server. */
  get folders(): vscode.WorkspaceFolder[] {
    return [...this.#sessions.values()].map(({ folder }) => folder);
  }

  /** What is done with a notification. To be said before the start. */
  on<T>(method: string, handler: (params: T) => void): void {
    this.#handlers.set(method, handler as Handler);
  }

  /** The folder that a run, or a question, is about; undefined when it is not in the window any more. */
  folderOf(id: string): vscode.WorkspaceFolder | undefined {
    return this.folders.find(({ uri }) => uri.toString() === this.#homes.of(id));
  }

  /** Starts anew, one time after the other. */
  start(): Promise<void> {
    return this.#inTurn(() => this.#begin());
  }

  async #begin(): Promise<void> {
    await this.stop();
    if (!vscode.workspace.isTrusted) {
      return this.#become("untrusted");
    }
    const folders = (vscode.workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === "file");
    if (folders.length === 0) {
      return this.#become("no_folder");
    }
    await this.#open(folders);
  }

  async stop(): Promise<void> {
    const sessions = [...this.#sessions.values()];
    this.#sessions.clear();
    await Promise.all(sessions.map((session) => session.stop()));
    this.#become("off");
  }

  /** Runs one of the server's commands. Its refusal is an error with what is wrong. */
  async execute<T>(command: string, about: object): Promise<T> {
    if (command === "starling.acceptAll" && !("run" in about)) {
      await this.everywhere("workspace/executeCommand", { command, arguments: [bare(about)] });
      return undefined as T;
    }
    const session = this.#sessionOf(about);
    const argument = withModel(command, bare(about), setting("model", ""));
    const reply = await session.request<T>("workspace/executeCommand", { command, arguments: [argument] });
    this.#homes.learn(reply, session.folder.uri.toString());
    return reply;
  }

  /** Asks the server of the folder that it is about. */
  async request<T>(method: string, about: object): Promise<T> {
    return this.#sessionOf(about).request<T>(method, bare(about));
  }

  /** Asks all servers that run. */
  async everywhere<T>(method: string, params?: object): Promise<T[]> {
    const running = [...this.#sessions.values()].filter(({ state }) => state.kind === "running");
    return Promise.all(running.map((session) => session.request<T>(method, params)));
  }

  /** Asks the server of one folder. */
  async inFolder<T>(folder: vscode.WorkspaceFolder, method: string): Promise<T> {
    return this.#sessionOf({ folder: folder.uri.toString() }).request<T>(method);
  }

  /** In which folder runs are that a server told of. */
  learn(runs: { run: string }[], folder: vscode.WorkspaceFolder): void {
    runs.forEach((run) => this.#homes.learn(run, folder.uri.toString()));
  }

  dispose(): void {
    void this.stop();
    this.#listening.forEach((one) => one.dispose());
    this.#bridge.dispose();
    this.#changed.dispose();
    this.#came.dispose();
    this.#lenses.dispose();
    this.log.dispose();
  }

  async #open(folders: readonly vscode.WorkspaceFolder[]): Promise<void> {
    const keys = await this.#keys();
    const made = folders.map((folder) => this.#session(folder));
    this.#changed.fire(this.state);
    // One that does not answer must not hold up the next start.
    made.forEach((session) => void session.start(keys));
  }

  #inTurn(act: () => Promise<void>): Promise<void> {
    this.#turn = this.#turn.then(act).catch((error: unknown) => this.log.error(String(error)));
    return this.#turn;
  }

  #session(folder: vscode.WorkspaceFolder): Session {
    const { log } = this;
    const home = folder.uri.toString();
    const handlers = [...this.#handlers].map(([method, handle]): [string, Handler] => [
      method,
      (params) => {
        this.#homes.learn(params, home);
        handle(params);
      },
    ]);
    const lensesAsked = () => this.#lenses.fire();
    const shared = { context: this.#context, log, saver: this.#saver, bridge: this.#bridge, lensesAsked };
    const session: Session = new Session(folder, shared, new Map(handlers), () => {
      if (this.#sessions.get(home) === session) {
        this.#changed.fire(this.state);
        if (session.state.kind === "running") {
          this.#came.fire(folder);
        }
      }
    });
    this.#sessions.set(home, session);
    return session;
  }

  async #follow({ added, removed }: vscode.WorkspaceFoldersChangeEvent): Promise<void> {
    if (!vscode.workspace.isTrusted) {
      return;
    }
    const gone = removed.flatMap(({ uri }) => this.#sessions.get(uri.toString()) ?? []);
    removed.forEach(({ uri }) => this.#sessions.delete(uri.toString()));
    await Promise.all(gone.map((session) => session.stop()));
    await this.#open(added.filter(({ uri }) => uri.scheme === "file"));
  }

  #sessionOf(about: object): Session {
    const home = this.#homes.find(about, [...this.#sessions.keys()]);
    const session = this.#sessions.get(home ?? "");
    if (!session) {
      const known = this.#sessions.size > 0;
      throw new Error(
        known
          ? "This folder, or this run, is not in the window any more."
          : "Starling's server is not running. `Starling: Restart Server` starts it.",
      );
    }
    return session;
  }

  #become(kind: "off" | "untrusted" | "no_folder"): void {
    this.#kind = kind;
    this.#changed.fire(this.state);
  }
}
