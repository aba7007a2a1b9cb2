/** What is offered on a symbol, at the end of its first line: no line of the text moves when it comes or goes. */

import * as vscode from "vscode";
import { byLine, type Lens, link, type OfferedLine } from "../model/offers.ts";
import { placed } from "../model/route.ts";
import type { Runs } from "./runs.ts";
import type { Server } from "./server.ts";
import { setting } from "./settings.ts";

/** What happens in one go is drawn once. */
const PAUSE_MS = 100;
/** The longest remark, in characters. */
const LONGEST = 80;

/** Whether offers stand above the lines of symbols, as the editor's own lenses. */
export function standAbove(): boolean {
  return setting<string>("lenses", "end") === "above";
}

export class Offers implements vscode.Disposable {
  readonly #server: Server;
  readonly #look = vscode.window.createTextEditorDecorationType({
    after: { color: new vscode.ThemeColor("editorCodeLens.foreground"), margin: "0 0 0 2em", fontStyle: "italic" },
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });
  readonly #listening: vscode.Disposable[];
  #pending: NodeJS.Timeout | undefined;

  constructor(server: Server, runs: Runs) {
    this.#server = server;
    this.#listening = [
      runs.onChange(() => this.#soon()),
      server.onLenses(() => this.#soon()),
      vscode.window.onDidChangeVisibleTextEditors(() => this.#soon()),
      vscode.workspace.onDidChangeTextDocument(() => this.#soon()),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration("starling.lenses")) {
          this.#soon();
        }
      }),
    ];
  }

  dispose(): void {
    clearTimeout(this.#pending);
    this.#listening.forEach((one) => one.dispose());
    this.#look.dispose();
  }

  #soon(): void {
    clearTimeout(this.#pending);
    this.#pending = setTimeout(() => void this.#draw(), PAUSE_MS);
  }

  async #draw(): Promise<void> {
    await Promise.all(vscode.window.visibleTextEditors.map((editor) => this.#drawIn(editor)));
  }

  async #drawIn(editor: vscode.TextEditor): Promise<void> {
    const { document } = editor;
    const folder = vscode.workspace.getWorkspaceFolder(document.uri)?.uri.toString();
    if (document.uri.scheme !== "file" || folder === undefined) {
      return;
    }
    const { version } = document;
    const lenses = standAbove() ? [] : await this.#lenses(document, folder);
    // What was typed meanwhile is drawn next.
    if (document.version === version) {
      editor.setDecorations(
        this.#look,
        byLine(lenses).map((offered) => remark(document, offered)),
      );
    }
  }

  async #lenses(document: vscode.TextDocument, folder: string): Promise<Lens[]> {
    const about = { folder, textDocument: { uri: document.uri.toString() } };
    const lenses = await this.#server.request<Lens[] | null>("textDocument/codeLens", about).catch(() => null);
    return (lenses ?? []).map((lens) => ({ ...lens, command: placed(lens.command, folder) }));
  }
}

function remark(document: vscode.TextDocument, { line, offers }: OfferedLine): vscode.DecorationOptions {
  const { end } = document.lineAt(Math.min(line, document.lineCount - 1)).range;
  const hover = new vscode.MarkdownString();
  hover.isTrusted = { enabledCommands: offers.flatMap(({ commands }) => commands.map(({ command }) => command)) };
  for (const { about, commands } of offers) {
    hover.appendText(about);
    hover.appendMarkdown(`\n\n${commands.map(link).join(" · ")}\n\n`);
  }
  const text = offers.map(({ about }) => about).join(" · ");
  const shown = text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
  return {
    range: new vscode.Range(end, end),
    hoverMessage: hover,
    renderOptions: { after: { contentText: shown } },
  };
}
