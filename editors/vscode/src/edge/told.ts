/** Texts that are only to be read: reasons and evidence, as Markdown without a file. */

import * as vscode from "vscode";

const TOLD = "starling-told";

export class Told implements vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<vscode.Uri>();
  readonly #texts = new Map<string, string>();
  readonly #listening = vscode.workspace.registerTextDocumentContentProvider(TOLD, this);

  get onDidChange(): vscode.Event<vscode.Uri> {
    return this.#changed.event;
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.#texts.get(uri.toString()) ?? "";
  }

  /** Shows a text, as a reader sees it. */
  async show(name: string, markdown: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme: TOLD, path: `/${name}.md` });
    this.#texts.set(uri.toString(), markdown);
    this.#changed.fire(uri);
    try {
      await vscode.commands.executeCommand("markdown.showPreview", uri);
    } catch {
      // The editor's own Markdown extension may be turned off.
      await vscode.window.showTextDocument(uri, { preview: true });
    }
  }

  dispose(): void {
    this.#listening.dispose();
    this.#changed.dispose();
  }
}
