/** Tells one who types in a symbol that an agent holds that the agent is there, and that nothing typed is lost. */

import * as vscode from "vscode";
import { placeHint, type Worker } from "../model/presence.ts";
import { symbolAt } from "./place.ts";
import type { Runs } from "./runs.ts";

/** What is typed in one go is answered once. */
const PAUSE_MS = 250;

export class Presence implements vscode.Disposable {
  readonly #runs: Runs;
  readonly #look = vscode.window.createTextEditorDecorationType({
    after: { color: new vscode.ThemeColor("editorCodeLens.foreground"), margin: "0 0 0 2em", fontStyle: "italic" },
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });
  readonly #listening: vscode.Disposable[];
  #pending: NodeJS.Timeout | undefined;
  /** Where the user typed last. */
  #typed: { editor: vscode.TextEditor; symbol: string; folder: string } | null = null;

  constructor(runs: Runs) {
    this.#runs = runs;
    this.#listening = [
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        const editor = vscode.window.activeTextEditor;
        if (editor?.document === document && contentChanges.length > 0 && this.#workers().length > 0) {
          this.#soon(editor);
        }
      }),
      vscode.window.onDidChangeActiveTextEditor(() => this.#leave()),
      runs.onChange(() => this.#show()),
    ];
  }

  dispose(): void {
    clearTimeout(this.#pending);
    this.#listening.forEach((one) => one.dispose());
    this.#look.dispose();
  }

  #soon(editor: vscode.TextEditor): void {
    clearTimeout(this.#pending);
    this.#pending = setTimeout(() => void this.#find(editor), PAUSE_MS);
  }

  async #find(editor: vscode.TextEditor): Promise<void> {
    const { symbol, folder } = (await symbolAt(editor.document.uri, editor.selection.active)) ?? {};
    this.#leave();
    this.#typed = symbol && folder ? { editor, symbol, folder } : null;
    this.#show();
  }

  #leave(): void {
    this.#typed?.editor.setDecorations(this.#look, []);
    this.#typed = null;
  }

  #show(): void {
    if (!this.#typed) {
      return;
    }
    const { editor, symbol, folder } = this.#typed;
    const hint = placeHint(symbol, this.#workers(folder));
    if (hint === null) {
      return this.#leave();
    }
    const line = editor.document.lineAt(editor.selection.active.line).range;
    const says = { range: new vscode.Range(line.end, line.end), renderOptions: { after: { contentText: hint } } };
    editor.setDecorations(this.#look, [says]);
  }

  /** Who is at work, in one folder or in all. */
  #workers(folder?: string): Worker[] {
    return this.#runs.all
      .filter(({ id }) => folder === undefined || this.#runs.folderOf(id)?.uri.toString() === folder)
      .flatMap((story) => story.working.map(({ key, doing }) => ({ symbol: key, doing })));
  }
}
