/** A run whose model could not be asked is no dead end: its task is kept, and what helps is offered. */

import * as vscode from "vscode";
import type { RemedyParams } from "../model/protocol.ts";
import { AGAIN, buttons, CHOOSE, KEY } from "../model/remedy.ts";
import { askForKey } from "./keys.ts";
import { chooseModel } from "./models.ts";
import type { Server } from "./server.ts";

/** What a run was begun with: the arguments of `starling.run`. */
export type Begun = { task: string; folder: string } & Record<string, unknown>;

export class Remedies implements vscode.Disposable {
  readonly #context: vscode.ExtensionContext;
  readonly #server: Server;
  readonly #begun = new Map<string, Begun>();
  readonly #listening: vscode.Disposable;
  /** Runs as soon as the server of its folder is there again. */
  #waiting: Begun | null = null;

  constructor(context: vscode.ExtensionContext, server: Server) {
    this.#context = context;
    this.#server = server;
    server.on<RemedyParams>("starling/remedy", (params) => void this.#offer(params));
    this.#listening = server.onRunning((folder) => void this.#goOn(folder));
  }

  dispose(): void {
    this.#listening.dispose();
  }

  /** Begins a run, and keeps what it was begun with. */
  async begin(begun: Begun): Promise<void> {
    const { run } = await this.#server.execute<{ run: string }>("starling.run", begun);
    this.#begun.set(run, begun);
  }

  /** Begins the task of an ended run once more. */
  async again(run: string): Promise<void> {
    const begun = this.#begun.get(run);
    const reply = await this.#server.execute<{ run: string }>("starling.retry", { run });
    if (begun) {
      this.#begun.set(reply.run, begun);
    }
  }

  async #offer(params: RemedyParams): Promise<void> {
    const { run, task, message } = params;
    const folder = this.#server.folderOf(run)?.uri.toString() ?? "";
    const begun = this.#begun.get(run) ?? { task, folder };
    const choice = await vscode.window.showErrorMessage(`Starling: ${message}`, ...buttons(params));
    try {
      await this.#follow(choice, run, begun);
    } catch (error) {
      void vscode.window.showErrorMessage(`Starling: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  async #follow(choice: string | undefined, run: string, begun: Begun): Promise<void> {
    switch (choice) {
      case undefined:
        return;
      case AGAIN:
        return this.again(run);
      case KEY:
        return this.#afterRestart(begun, () => askForKey(this.#context, this.#server));
      case CHOOSE:
        // The choice needs no restart: the next run uses it.
        if ((await chooseModel(this.#server)) === "changed") {
          await this.again(run);
        }
        return;
      default: {
        const reply = await this.#server.execute<{ run: string }>("starling.retry", { run, download: true });
        this.#begun.set(reply.run, begun);
      }
    }
  }

  /** Runs the task when the server was started anew, which a changed key does. */
  async #afterRestart(begun: Begun, change: () => Promise<"changed" | "left">): Promise<void> {
    this.#waiting = begun;
    if ((await change()) === "left") {
      this.#waiting = null;
    }
  }

  async #goOn(folder: vscode.WorkspaceFolder): Promise<void> {
    const waiting = this.#waiting;
    if (waiting?.folder === folder.uri.toString()) {
      this.#waiting = null;
      await this.begin(waiting);
    }
  }
}
