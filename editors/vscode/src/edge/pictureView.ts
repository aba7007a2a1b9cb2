/** The picture of a run, in an editor of its own. */

import * as vscode from "vscode";
import { picture } from "../model/picture.ts";
import { isAgent } from "../model/symbol.ts";
import { openSymbol } from "./place.ts";
import type { Runs } from "./runs.ts";
import { options, page } from "./webview.ts";

/** What the page asks for. */
type Wish =
  { wish: "ready" } | { wish: "open"; symbol: string } | { wish: "review"; proposal: number } | { wish: "stop" };

export class PictureView implements vscode.Disposable, vscode.WebviewPanelSerializer {
  readonly #extension: vscode.Uri;
  readonly #runs: Runs;
  readonly #listening: vscode.Disposable[];
  #panel: vscode.WebviewPanel | null = null;
  #run: string | undefined;

  constructor(extension: vscode.Uri, runs: Runs) {
    this.#extension = extension;
    this.#runs = runs;
    this.#listening = [
      runs.onChange(() => this.#draw()),
      vscode.window.registerWebviewPanelSerializer("starling.picture", this),
    ];
  }

  /** Shows a run, or whichever is the newest. */
  show(run: string | undefined): void {
    this.#run = run;
    if (this.#panel) {
      this.#panel.reveal();
      return this.#draw();
    }
    const column = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true };
    const panel = vscode.window.createWebviewPanel(
      "starling.picture",
      "Starling: Run",
      column,
      options(this.#extension),
    );
    this.#fill(panel);
  }

  /** The picture of a window that was loaded anew shows the same run as before. */
  async deserializeWebviewPanel(panel: vscode.WebviewPanel, state: { run?: string } | undefined): Promise<void> {
    this.#run = state?.run;
    panel.webview.options = options(this.#extension);
    this.#fill(panel);
  }

  #fill(panel: vscode.WebviewPanel): void {
    const icon = (theme: string) => vscode.Uri.joinPath(this.#extension, "media", `starling-${theme}.svg`);
    panel.iconPath = { light: icon("light"), dark: icon("dark") };
    panel.webview.html = page(panel.webview, this.#extension, "picture", "The picture of the run");
    panel.webview.onDidReceiveMessage((wish: Wish) => void this.#grant(wish));
    panel.onDidDispose(() => {
      this.#panel = null;
    });
    this.#panel = panel;
  }

  dispose(): void {
    this.#listening.forEach((one) => one.dispose());
    this.#panel?.dispose();
  }

  #draw(): void {
    const story = this.#run === undefined ? this.#runs.newest : this.#runs.get(this.#run);
    void this.#panel?.webview.postMessage(story ? picture(story) : null);
  }

  async #grant(wish: Wish): Promise<void> {
    const run = this.#run ?? this.#runs.newest?.id;
    switch (wish.wish) {
      case "ready":
        return this.#draw();
      case "open":
        return isAgent(wish.symbol) ? openSymbol(wish.symbol, this.#runs.folderOf(run ?? "")) : undefined;
      case "review":
        return vscode.commands.executeCommand("starling.client.diff", { run, proposal: wish.proposal });
      case "stop":
        return vscode.commands.executeCommand("starling.client.stop", { run });
    }
  }
}
