/** The status bar: the server's state, what the run does, and its ledger. */

import * as vscode from "vscode";
import { ledgerLines, ledgerShare, statusLine } from "../model/words.ts";
import type { Runs } from "./runs.ts";
import type { Server } from "./server.ts";

/** From here on the ledger is shown as nearly full. */
const NEARLY = 0.8;

export class Status implements vscode.Disposable {
  readonly #item = vscode.window.createStatusBarItem("starling.status", vscode.StatusBarAlignment.Left, 50);
  readonly #server: Server;
  readonly #runs: Runs;
  readonly #listening: vscode.Disposable[];

  constructor(server: Server, runs: Runs) {
    this.#server = server;
    this.#runs = runs;
    this.#item.name = "Starling";
    this.#listening = [server.onState(() => this.#show()), runs.onChange(() => this.#show())];
    this.#show();
  }

  dispose(): void {
    this.#listening.forEach((one) => one.dispose());
    this.#item.dispose();
  }

  #show(): void {
    const state = this.#server.state;
    this.#item.command = "starling.client.menu";
    this.#item.backgroundColor = undefined;
    switch (state.kind) {
      case "off":
      case "no_folder":
        return this.#item.hide();
      case "untrusted":
        this.#item.command = "workbench.trust.manage";
        return this.#say(
          "shield",
          "Starling: restricted",
          "Nothing is started in an untrusted workspace. Click to trust it.",
        );
      case "missing":
      case "failed":
        this.#item.backgroundColor = new vscode.ThemeColor("statusBarItem.errorBackground");
        return this.#say("error", "Starling: not running", state.message);
      case "starting":
        return this.#say("sync~spin", "Starling", "The server is starting.");
      case "running":
        return this.#run();
    }
  }

  #run(): void {
    // A window begins without a word about what ended before it.
    const story = this.#runs.all.find(({ past }) => !past);
    if (!story) {
      return this.#say("organization", "Starling", "Ready. Click for what Starling can do.");
    }
    const waiting = story.waiting.length + story.intents.size > 0;
    const share = ledgerShare(story.used, story.limits);
    if (waiting || (story.running && share >= NEARLY)) {
      this.#item.backgroundColor = new vscode.ThemeColor("statusBarItem.warningBackground");
    }
    const lines = [story.task, "", ...ledgerLines(story.used, story.limits)];
    const recorded = story.replayed ? ["", "The answers come from a recording."] : [];
    const icon = story.running && !waiting ? "sync~spin" : "organization";
    this.#say(icon, `Starling: ${statusLine(story)}`, [...lines, ...recorded].join("\n"));
  }

  #say(icon: string, text: string, tooltip: string): void {
    this.#item.text = `$(${icon}) ${text}`;
    this.#item.tooltip = tooltip;
    this.#item.accessibilityInformation = { label: `${text}. ${tooltip}`, role: "button" };
    this.#item.show();
  }
}
