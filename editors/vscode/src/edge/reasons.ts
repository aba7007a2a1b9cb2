/** Says in a diff why it is proposed and how its tests went, where the change begins; all of it under the mouse. */

import * as vscode from "vscode";
import { headline } from "../model/words.ts";
import { PROPOSED, type Review } from "./review.ts";
import type { Runs } from "./runs.ts";

export class Reasons implements vscode.Disposable {
  readonly #runs: Runs;
  readonly #review: Review;
  readonly #look = vscode.window.createTextEditorDecorationType({
    after: { color: new vscode.ThemeColor("editorCodeLens.foreground"), margin: "0 0 0 2em", fontStyle: "italic" },
  });
  readonly #listening: vscode.Disposable[];

  constructor(runs: Runs, review: Review) {
    this.#runs = runs;
    this.#review = review;
    this.#listening = [
      vscode.window.onDidChangeVisibleTextEditors(() => this.#draw()),
      vscode.workspace.onDidChangeTextDocument(({ document }) => {
        if (document.uri.scheme === PROPOSED) {
          this.#draw();
        }
      }),
      runs.onChange(() => this.#draw()),
    ];
  }

  dispose(): void {
    this.#listening.forEach((one) => one.dispose());
    this.#look.dispose();
  }

  #draw(): void {
    for (const editor of vscode.window.visibleTextEditors) {
      const shown = this.#review.of(editor.document.uri);
      const line = this.#review.firstChange(editor.document.uri);
      const proposal = shown && this.#runs.proposal(shown.run, shown.proposal);
      if (!shown || !proposal || line === undefined) {
        continue;
      }
      const { range } = editor.document.lineAt(Math.min(line, editor.document.lineCount - 1));
      const hover = new vscode.MarkdownString();
      hover.isTrusted = { enabledCommands: ["starling.client.why"] };
      hover.appendText(headline(proposal));
      const details = encodeURIComponent(JSON.stringify([shown]));
      hover.appendMarkdown(`\n\n[Reason, tests and all evidence](command:starling.client.why?${details})`);
      const remark = {
        range: new vscode.Range(range.end, range.end),
        hoverMessage: hover,
        renderOptions: { after: { contentText: headline(proposal) } },
      };
      editor.setDecorations(this.#look, [remark]);
    }
  }
}
