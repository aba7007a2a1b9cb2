/** A proposal as the user wants it: the right side of its diff as a file that can be edited and saved. */

import * as vscode from "vscode";
import { pathIn } from "./place.ts";
import type { Proposed, ProposedFile, Review, Reviewed } from "./review.ts";
import type { Runs } from "./runs.ts";
import type { Server } from "./server.ts";
import { shortName } from "../model/symbol.ts";

/** The scheme of proposed texts that are edited. */
const EDITED = "starling-edit";

/** A file of a proposal that is being edited. */
interface Draft {
  target: Reviewed;
  /** The version of the proposal that is edited. */
  version: number | undefined;
  file: ProposedFile;
  text: Uint8Array;
  mtime: number;
}

/** A version that was sent to be checked. */
interface SentVersion {
  target: Reviewed;
  /** The document in which it was edited. */
  uri: vscode.Uri;
  /** How often its review had been asked for. */
  asked: number;
}

/** Saving sends the version to the server, which has it checked and asks about it again. */
export class Editing implements vscode.FileSystemProvider, vscode.Disposable {
  readonly #server: Server;
  readonly #runs: Runs;
  readonly #review: Review;
  readonly #changed = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly #drafts = new Map<string, Draft>();
  /** Sent, and to be shown when it waits for review again. */
  readonly #sent: SentVersion[] = [];
  readonly #listening: vscode.Disposable[];
  #opened = 0;

  constructor(server: Server, runs: Runs, review: Review) {
    this.#server = server;
    this.#runs = runs;
    this.#review = review;
    this.#listening = [
      vscode.workspace.registerFileSystemProvider(EDITED, this, { isCaseSensitive: true }),
      runs.onChange(() => void this.#showChecked()),
    ];
  }

  get onDidChangeFile(): vscode.Event<vscode.FileChangeEvent[]> {
    return this.#changed.event;
  }

  /** Opens the diff of a proposal with its right side to be edited. */
  async open(target: Reviewed): Promise<void> {
    const { files, version } = await this.#server.request<Proposed>("starling/proposal", target);
    if (files.length === 0) {
      void vscode.window.showInformationMessage(`Proposal #${target.proposal} does not wait for review any more.`);
      return;
    }
    const file = files.length === 1 ? files[0] : await choose(files);
    if (!file) {
      return;
    }
    if (file.after === null) {
      throw new Error(
        `proposal #${target.proposal} conflicts with what you typed since; hand it back, or edit your text`,
      );
    }
    const uri = vscode.Uri.parse(file.uri);
    // Each time a text of its own: what was left unsaved before is not mixed in.
    this.#opened += 1;
    const path = `/Edit #${target.proposal}/${pathIn(uri) ?? uri.path}`;
    const edited = vscode.Uri.from({ scheme: EDITED, path, query: `${this.#opened}` });
    this.#drafts.set(edited.toString(), { target, version, file, text: bytesOf(file.after), mtime: Date.now() });
    const symbol = shortName(this.#runs.proposal(target.run, target.proposal)?.symbol ?? "");
    const title = `Edit #${target.proposal}: ${symbol} (save to have it checked)`;
    const empty = vscode.Uri.from({ scheme: EDITED, path: "/nothing" });
    await vscode.commands.executeCommand("vscode.diff", file.creates ? empty : uri, edited, title, { preview: false });
  }

  async writeFile(uri: vscode.Uri, content: Uint8Array): Promise<void> {
    const draft = this.#draft(uri);
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(content);
    const { target, version, file } = draft;
    if (text !== file.after) {
      const files = [{ uri: file.uri, before: file.before, text }];
      // The server may tell of the check before it answers.
      const sent: SentVersion = { target, uri, asked: this.#asked(target) };
      this.#sent.push(sent);
      try {
        await this.#server.execute("starling.edit", { ...target, version, files });
      } catch (error) {
        this.#sent.splice(this.#sent.indexOf(sent), 1);
        throw vscode.FileSystemError.NoPermissions(error instanceof Error ? error.message : String(error));
      }
    }
    Object.assign(draft, { text: content, mtime: Date.now() });
    this.#changed.fire([{ type: vscode.FileChangeType.Changed, uri }]);
    // The editor has yet to see that it is saved.
    setTimeout(() => void this.#close(uri), 0);
  }

  readFile(uri: vscode.Uri): Uint8Array {
    return uri.path === "/nothing" ? new Uint8Array() : this.#draft(uri).text;
  }

  stat(uri: vscode.Uri): vscode.FileStat {
    if (uri.path === "/nothing") {
      return { type: vscode.FileType.File, ctime: 0, mtime: 0, size: 0, permissions: vscode.FilePermission.Readonly };
    }
    const { text, mtime } = this.#draft(uri);
    return { type: vscode.FileType.File, ctime: 0, mtime, size: text.length };
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => undefined);
  }

  readDirectory(): [string, vscode.FileType][] {
    return [];
  }

  createDirectory(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  delete(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  rename(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  dispose(): void {
    this.#listening.forEach((one) => one.dispose());
    this.#changed.dispose();
  }

  #draft(uri: vscode.Uri): Draft {
    const draft = this.#drafts.get(uri.toString());
    if (!draft) {
      throw vscode.FileSystemError.FileNotFound(uri);
    }
    return draft;
  }

  async #close(uri: vscode.Uri): Promise<void> {
    const shows = ({ input }: vscode.Tab) =>
      input instanceof vscode.TabInputTextDiff && input.modified.toString() === uri.toString();
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    await vscode.window.tabGroups.close(tabs.filter((tab) => shows(tab) && !tab.isDirty));
  }

  /** Shows what was sent as soon as it is checked. */
  async #showChecked(): Promise<void> {
    for (const sent of [...this.#sent]) {
      const state = this.#runs.proposal(sent.target.run, sent.target.proposal)?.state;
      const isAskedAgain = state === "waiting" && this.#asked(sent.target) > sent.asked;
      if (isAskedAgain || (state !== "checking" && state !== "waiting")) {
        this.#sent.splice(this.#sent.indexOf(sent), 1);
      }
      if (isAskedAgain) {
        await this.#review.open(sent.target);
        await this.#close(sent.uri);
      }
    }
  }

  /** How often the review of a proposal was asked for. */
  #asked(target: Reviewed): number {
    return this.#runs.proposal(target.run, target.proposal)?.asked ?? 0;
  }
}

async function choose(files: ProposedFile[]): Promise<ProposedFile | undefined> {
  const items = files.map((file) => ({ label: pathIn(vscode.Uri.parse(file.uri)) ?? file.uri, file }));
  const chosen = await vscode.window.showQuickPick(items, { title: "Starling: Edit Which File of the Proposal?" });
  return chosen?.file;
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
