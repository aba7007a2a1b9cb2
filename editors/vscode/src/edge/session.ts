/** One server in one folder: its client, and what passes between the two. */

import { accessSync, constants, statSync } from "node:fs";
import { homedir } from "node:os";
import * as vscode from "vscode";
import {
  type DynamicFeature,
  LanguageClient,
  type LanguageClientOptions,
  type Middleware,
  RevealOutputChannelOn,
  State,
  type StaticFeature,
} from "vscode-languageclient/node";
import { serverArguments } from "../model/arguments.ts";
import { findBinary } from "../model/binary.ts";
import { placed } from "../model/route.ts";
import { BRIDGE, type Bridge } from "./bridge.ts";
import { standAbove } from "./offers.ts";
import type { Saver } from "./saver.ts";
import { setting } from "./settings.ts";

export type SessionState =
  | { kind: "missing"; message: string }
  | { kind: "starting" }
  | { kind: "running" }
  | { kind: "failed"; message: string };

/** Commands that lenses and actions of the server may name, because this extension brings them. */
export const CLIENT_COMMANDS = ["change", "ask", "reject", "steer", "diff", "why"].map(
  (name) => `starling.client.${name}`,
);

export type Handler = (params: object) => void;

/** What all sessions of a window share. */
export interface Shared {
  context: vscode.ExtensionContext;
  log: vscode.LogOutputChannel;
  saver: Saver;
  bridge: Bridge;
  /** The server's lenses are asked for: something changed, or the server says that they did. */
  lensesAsked: () => void;
}

/** The server's commands are registered once for all sessions, not by each client. */
class Client extends LanguageClient {
  override registerFeature(feature: StaticFeature | DynamicFeature<unknown>): void {
    if (!("registrationType" in feature) || feature.registrationType.method !== "workspace/executeCommand") {
      super.registerFeature(feature);
    }
  }
}

export class Session {
  readonly folder: vscode.WorkspaceFolder;
  readonly #shared: Shared;
  readonly #handlers: Map<string, Handler>;
  readonly #changed: () => void;
  #state: SessionState = { kind: "starting" };
  #client: LanguageClient | null = null;

  constructor(folder: vscode.WorkspaceFolder, shared: Shared, handlers: Map<string, Handler>, changed: () => void) {
    this.folder = folder;
    this.#shared = shared;
    this.#handlers = handlers;
    this.#changed = changed;
  }

  get state(): SessionState {
    return this.#state;
  }

  async start(keys: Record<string, string>): Promise<void> {
    const { log, context } = this.#shared;
    const found = findBinary(places(context), isProgram);
    if (found.kind === "missing") {
      log.error(found.message);
      return this.#become(found);
    }
    const client = this.#create(found.path, keys);
    this.#client = client;
    log.info(`starting ${found.path} (${found.from}) in ${this.folder.uri.fsPath}`);
    try {
      await client.start();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      log.error(message);
      this.#become({ kind: "failed", message });
    }
  }

  async stop(): Promise<void> {
    const client = this.#client;
    this.#client = null;
    if (client && client.state !== State.Stopped) {
      await client.dispose(2000).catch((error: unknown) => this.#shared.log.warn(`stopping: ${error}`));
    }
  }

  async request<T>(method: string, params?: object): Promise<T> {
    if (!this.#client || this.#state.kind !== "running") {
      throw new Error("Starling's server is not running. `Starling: Restart Server` starts it.");
    }
    return params ? this.#client.sendRequest<T>(method, params) : this.#client.sendRequest<T>(method);
  }

  #become(state: SessionState): void {
    this.#state = state;
    this.#changed();
  }

  #create(path: string, keys: Record<string, string>): LanguageClient {
    const args = serverArguments(setting("config", {}));
    const environment = setting<Record<string, string>>("environment", {});
    const options = { cwd: this.folder.uri.fsPath, env: { ...process.env, ...keys, ...environment } };
    const client = new Client("starling", "Starling", { command: path, args, options }, this.#options());
    client.registerFeature({
      fillClientCapabilities: (capabilities) => {
        capabilities.experimental = { starling: { commands: CLIENT_COMMANDS, bridge: BRIDGE, notices: true } };
      },
      initialize: () => undefined,
      getState: () => ({ kind: "static" }),
      clear: () => undefined,
    });
    for (const [method, handler] of this.#handlers) {
      client.onNotification(method, handler);
    }
    this.#shared.bridge.serve(client);
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

  #options(): LanguageClientOptions {
    const { log } = this.#shared;
    return {
      // What is open besides the project is not the server's to know.
      documentSelector: [{ scheme: "file", pattern: { baseUri: this.folder.uri.toString(), pattern: "**/*" } }],
      workspaceFolder: this.folder,
      outputChannel: log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      middleware: this.#middleware(),
    };
  }

  #middleware(): Middleware {
    const { saver } = this.#shared;
    const folder = this.folder.uri.toString();
    return {
      // The status bar tells it, with the ledger.
      handleWorkDoneProgress: () => undefined,
      // Whatever is offered says which folder it is of: paths of symbols do not.
      provideCodeLenses: async (document, token, next) => {
        this.#shared.lensesAsked();
        const lenses = standAbove() && this.#owns(document) ? await next(document, token) : [];
        return lenses?.map((lens) => Object.assign(lens, { command: placed(lens.command, folder) }));
      },
      provideCodeActions: async (document, range, context, token, next) => {
        const actions = this.#owns(document) ? await next(document, range, context, token) : [];
        return actions?.map((one) =>
          "command" in one && typeof one.command === "object"
            ? Object.assign(one, { command: placed(one.command, folder) })
            : one,
        );
      },
      workspace: {
        handleApplyEdit: async (params, next) => {
          const clean = saver.clean(params);
          const reply = await next(params, new vscode.CancellationTokenSource().token);
          // The server does not wait for the disk.
          saver.save(clean);
          return reply;
        },
      },
    };
  }

  /** A folder may lie in another: a file is the innermost one's. */
  #owns(document: vscode.TextDocument): boolean {
    return vscode.workspace.getWorkspaceFolder(document.uri)?.uri.toString() === this.folder.uri.toString();
  }
}

function places(context: vscode.ExtensionContext): Parameters<typeof findBinary>[0] {
  return {
    setting: setting("path", ""),
    extension: context.extensionPath,
    path: process.env["PATH"] ?? "",
    home: homedir(),
    folders: (vscode.workspace.workspaceFolders ?? []).map(({ uri }) => uri.fsPath),
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
