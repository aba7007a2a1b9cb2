/** Saves what an edit of the server changed, where nothing of the user's was unsaved. */

import * as vscode from "vscode";
import type { ApplyWorkspaceEditParams } from "vscode-languageclient";
import { setting } from "./settings.ts";

export class Saver {
  readonly #log: vscode.LogOutputChannel;
  /** Files that are dirty only because they are just being saved. */
  readonly #saving = new Map<string, Promise<void>>();

  constructor(log: vscode.LogOutputChannel) {
    this.#log = log;
  }

  /** Files of an edit that hold no unsaved typing; to be asked before it is applied. */
  clean({ edit }: ApplyWorkspaceEditParams): vscode.Uri[] {
    const changes = edit.documentChanges ?? [];
    const uris = changes.flatMap((change) =>
      "textDocument" in change ? [vscode.Uri.parse(change.textDocument.uri)] : [],
    );
    const dirty = vscode.workspace.textDocuments
      .filter((document) => document.isDirty)
      .map(({ uri }) => uri.toString());
    return uris.filter((uri) => !dirty.includes(uri.toString()) || this.#saving.has(uri.toString()));
  }

  /** Saves them, one time after the other. */
  save(uris: vscode.Uri[]): void {
    if (!setting("review.save", true)) {
      return;
    }
    for (const uri of uris) {
      const key = uri.toString();
      const saved = (this.#saving.get(key) ?? Promise.resolve()).then(() => this.#write(uri));
      this.#saving.set(key, saved);
      void saved.then(() => {
        if (this.#saving.get(key) === saved) {
          this.#saving.delete(key);
        }
      });
    }
  }

  async #write(uri: vscode.Uri): Promise<void> {
    try {
      const document = await vscode.workspace.openTextDocument(uri);
      await document.save();
    } catch (error) {
      // The edit itself may have deleted it.
      this.#log.warn(`saving ${uri.fsPath}: ${error}`);
    }
  }
}
