/** A changed setting starts the server anew, which would cut a run short: it waits for the end of the run. */

import * as vscode from "vscode";
import type { Runs } from "./runs.ts";
import type { Server } from "./server.ts";
import { needsRestart } from "./settings.ts";

const NOW = "Restart Now";

export class Restarts implements vscode.Disposable {
  readonly #server: Server;
  readonly #runs: Runs;
  readonly #listening: vscode.Disposable[];
  #waiting = false;

  constructor(server: Server, runs: Runs) {
    this.#server = server;
    this.#runs = runs;
    this.#listening = [
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (needsRestart(event)) {
          void this.#settingChanged();
        }
      }),
      runs.onChange(() => {
        if (this.#waiting && !this.#going()) {
          void this.#restart();
        }
      }),
    ];
  }

  dispose(): void {
    this.#listening.forEach((one) => one.dispose());
  }

  /** Starts the server anew; asks first when that ends a run. */
  async ask(): Promise<void> {
    const text = "A run is going. It is interrupted when the server is started anew; you can run it again afterwards.";
    if (!this.#going() || (await vscode.window.showWarningMessage(text, { modal: true }, NOW)) === NOW) {
      await this.#restart();
    }
  }

  async #settingChanged(): Promise<void> {
    if (!this.#going()) {
      return this.#restart();
    }
    if (this.#waiting) {
      return;
    }
    this.#waiting = true;
    const text = "Starling: the changed setting holds when the run has ended. Restarting now interrupts the run.";
    const answer = await vscode.window.showInformationMessage(text, NOW);
    if (answer === NOW && this.#waiting) {
      await this.#restart();
    }
  }

  async #restart(): Promise<void> {
    this.#waiting = false;
    await this.#server.start();
  }

  #going(): boolean {
    return this.#server.state.kind === "running" && this.#runs.all.some((story) => story.running);
  }
}
