/** The server: finding, starting and asking it. */

import { accessSync, constants, statSync } from "node:fs";
import { homedir } from "node:os";
import * as vscode from "vscode";
import {
  LanguageClient,
  type LanguageClientOptions,
  type Middleware,
  RevealOutputChannelOn,
  State,
} from "vscode-languageclient/node";
import { serverArguments } from "../model/arguments.ts";
import { findBinary } from "../model/binary.ts";
import { Saver } from "./saver.ts";
import { setting } from "./settings.ts";

export type ServerState =
  | { kind: "off" }
  | { kind: "untrusted" }
  | { kind: "no_folder" }
  | { kind: "missing"; message: string }
  | { kind: "starting" }
  | { kind: "running" }
  | { kind: "failed"; message: string };

/** Commands that lenses and actions of the server may name, because this extension brings them. */
export const CLIENT_COMMANDS = ["change", "ask", "reject", "steer", "diff", "why"].map(
  (name) => `starling.client.${name}`,
);

type Handler = (params: never) => void;

export class Server implements vscode.Disposable {
  readonly log: vscode.LogOutputChannel;
  readonly #context: vscode.ExtensionContext;
  readonly #keys: () => Promise<Record<string, string>>;
  readonly #changed = new vscode.EventEmitter<ServerState>();
  readonly #handlers = new Map<string, Handler>();
  readonly #saver: Saver;
  #state: ServerState = { kind: "off" };
  #client: LanguageClient | null = null;

  /** `keys` gives the environment variables that hold the user's keys. */
  constructor(context: vscode.ExtensionContext, keys: () => Promise<Record<string, string>>) {
    this.#context = context;
    this.#keys = keys;
    this.log = vscode.window.createOutputChannel("Starling", { log: true });
    this.#saver = new Saver(this.log);
  }

  /** Fires when the server comes or goes. */
  get onState(): vscode.Event<ServerState> {
    return this.#changed.event;
  }

  get state(): ServerState {
    return this.#state;
  }

  /** What is done with a notification. To be said before the start. */
  on<T>(method: string, handler: (params: T) => void): void {
    this.#handlers.set(method, handler as Handler);
  }

  async start(): Promise<void> {
    await this.stop();
    if (!vscode.workspace.isTrusted) {
      return this.#become({ kind: "untrusted" });
    }
    const folder = vscode.workspace.workspaceFolders?.[0];
    if (!folder) {
      return this.#become({ kind: "no_folder" });
    }
    const found = findBinary(places(this.#context), isProgram);
    if (found.kind === "missing") {
      this.log.error(found.message);
      return this.#become(found);
    }
    this.#become({ kind: "starting" });
    const client = this.#create(found.path, folder, await this.#keys());
    this.#client = client;
    this.log.info(`starting ${found.path} (${found.from}) in ${folder.uri.fsPath}`);
    try {
      await client.start();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.log.error(message);
      this.#become({ kind: "failed", message });
    }
  }

  async stop(): Promise<void> {
    const client = this.#client;
    this.#client = null;
    if (client && client.state !== State.Stopped) {
      await client.dispose(2000).catch((error: unknown) => this.log.warn(`stopping: ${error}`));
    }
    this.#become({ kind: "off" });
  }

  /** Runs one of the server's commands. Its refusal is an error with what is wrong. */
  async execute<T>(command: string, argument: object): Promise<T> {
    return this.request<T>("workspace/executeCommand", { command, arguments: [argument] });
  }

  async request<T>(method: string, params?: object): Promise<T> {
    if (!this.#client || this.#state.kind !== "running") {
      throw new Error("Starling's server is not running. `Starling: Restart Server` starts it.");
    }
    return params ? this.#client.sendRequest<T>(method, params) : this.#client.sendRequest<T>(method);
  }

  dispose(): void {
    void this.stop();
    this.#changed.dispose();
    this.log.dispose();
  }

  #become(state: ServerState): void {
    this.#state = state;
    this.#changed.fire(state);
  }

  #create(path: string, folder: vscode.WorkspaceFolder, keys: Record<string, string>): LanguageClient {
    const args = serverArguments(setting("model", ""), setting("config", {}));
    const environment = setting<Record<string, string>>("environment", {});
    const options = { cwd: folder.uri.fsPath, env: { ...process.env, ...keys, ...environment } };
    const client = new LanguageClient("starling", "Starling", { command: path, args, options }, this.#options(folder));
    client.registerFeature({
      fillClientCapabilities: (capabilities) => {
        capabilities.experimental = { starling: { commands: CLIENT_COMMANDS } };
      },
      initialize: () => undefined,
      getState: () => ({ kind: "static" }),
      clear: () => undefined,
    });
    for (const [method, handler] of this.#handlers) {
      client.onNotification(method, handler as (params: unknown) => void);
    }
    client.onDidChangeState(({ newState }) => {
      if (this.#client === client) {
        this.#follow(newState);
      }
    });
    return client;
  }

  #follow(state: State): void {
    switch (state) {
      case State.Running:
        return this.#become({ kind: "running" });
      case State.Starting:
        return this.#become({ kind: "starting" });
      case State.Stopped:
      case State.StartFailed:
        return this.#become({
          kind: "failed",
          message: "The server has ended. `Starling: Show Log` tells more, `Starling: Restart Server` starts it again.",
        });
    }
  }

  #options(folder: vscode.WorkspaceFolder): LanguageClientOptions {
    const middleware: Middleware = {
      // The status bar tells it, with the ledger.
      handleWorkDoneProgress: () => undefined,
      workspace: {
        handleApplyEdit: async (params, next) => {
          const clean = this.#saver.clean(params);
          const reply = await next(params, new vscode.CancellationTokenSource().token);
          // The server does not wait for the disk.
          this.#saver.save(clean);
          return reply;
        },
      },
    };
    return {
      // What is open besides the project is not the server's to know.
      documentSelector: [{ scheme: "file", pattern: { baseUri: folder.uri.toString(), pattern: "**/*" } }],
      workspaceFolder: folder,
      outputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      middleware,
    };
  }
}

function places(context: vscode.ExtensionContext): Parameters<typeof findBinary>[0] {
  return {
    setting: setting("path", ""),
    extension: context.extensionPath,
    path: process.env["PATH"] ?? "",
    home: homedir(),
    windows: process.platform === "win32" ? "windows" : "other",
  };
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
