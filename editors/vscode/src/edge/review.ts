/** Reviewing proposals in the editor's own diff, always against the buffer as it is. */

import * as vscode from "vscode";
import type { Runs } from "./runs.ts";
import type { Server } from "./server.ts";
import { pathIn } from "./place.ts";
import { shortName } from "../model/symbol.ts";

/** The scheme of proposed texts, and of the empty text before a file that a proposal makes. */
export const PROPOSED = "starling-proposal";
const REFRESH_MS = 150;

/** A file of a proposal: as it is, and as it would be. */
export interface ProposedFile {
  uri: string;
  creates: boolean;
  before: string;
  /** Null where the proposal conflicts with what was typed. */
  after: string | null;
  /** Where it conflicts: the text as it was proposed. */
  proposed?: string;
}

/** A proposal as the server shows it. */
export interface Proposed {
  files: ProposedFile[];
  version?: number;
}

export interface Reviewed {
  run: string;
  proposal: number;
}

export class Review implements vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #server: Server;
  readonly #runs: Runs;
  readonly #changed = new vscode.EventEmitter<vscode.Uri>();
  /** What was shown of each opened proposal: the set that it belonged to. */
  readonly #opened = new Map<string, string>();
  readonly #versions = new Map<string, number | undefined>();
  readonly #texts = new Map<string, string>();
  /** By proposed texts: the first line that differs. */
  readonly #firstChanges = new Map<string, number>();
  /** Sets in an editor for many files, by its title: the editor does not tell what it shows. */
  readonly #sets = new Map<string, Reviewed>();
  readonly #listening: vscode.Disposable[];
  #pending: NodeJS.Timeout | null = null;

  constructor(server: Server, runs: Runs) {
    this.#server = server;
    this.#runs = runs;
    this.#listening = [
      vscode.workspace.registerTextDocumentContentProvider(PROPOSED, this),
      vscode.workspace.onDidChangeTextDocument(({ document }) => this.#soon(document)),
      runs.onChange(() => void this.#closeDecided()),
      vscode.window.tabGroups.onDidChangeTabs(() => this.#tellContext()),
      vscode.window.tabGroups.onDidChangeTabGroups(() => this.#tellContext()),
    ];
  }

  get onDidChange(): vscode.Event<vscode.Uri> {
    return this.#changed.event;
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.#texts.get(uri.toString()) ?? "";
  }

  /** Opens the diff of a proposal; that of a set with all its files. */
  async open(target: Reviewed): Promise<void> {
    const files = await this.#files(target);
    if (files.length === 0) {
      void vscode.window.showInformationMessage(`Proposal #${target.proposal} does not wait for review any more.`);
      return;
    }
    const conflict = files.find(({ after }) => after === null);
    if (conflict) {
      await this.#tellConflict(target, conflict);
    }
    if (conflict?.proposed === undefined && conflict) {
      return;
    }
    this.#opened.set(keyOf(target), this.#setOf(target));
    // The folder tells it from the file itself, wherever the editor lists what was open. Among many
    // files it would look like a file that moved.
    const folder = files.length === 1 ? `/Proposal #${target.proposal}/` : "/";
    const pairs = files.map((file) => this.#pair(target, file, folder));
    const title = conflict ? `${this.#title(target)}, in conflict with yours` : this.#title(target);
    const [first, ...more] = pairs;
    if (first && more.length === 0) {
      await vscode.commands.executeCommand("vscode.diff", first[1], first[2], title, { preview: true });
    } else {
      this.#sets.set(title, target);
      await vscode.commands.executeCommand("vscode.changes", title, pairs);
      this.#tellContext();
    }
  }

  /** A conflict is told with what can be done; the diff shows your text beside the proposed one. */
  async #tellConflict(target: Reviewed, { uri, creates }: ProposedFile): Promise<void> {
    const back = "Hand Back to Its Agent";
    const path = pathIn(vscode.Uri.parse(uri)) ?? uri;
    const text = creates
      ? `Proposal #${target.proposal} has no place: ${path} is gone. Nothing is made in its stead.`
      : `Proposal #${target.proposal} conflicts with what you typed since. Your text stays.`;
    void vscode.window.showWarningMessage(text, back).then(async (answer) => {
      if (answer === back) {
        await this.#handBack(target);
      }
    });
  }

  /** Accepting a conflict hands it back; one that is none any more is to be seen before it is accepted. */
  async #handBack(target: Reviewed): Promise<void> {
    const files = await this.#files(target);
    const conflicts = files.some(({ after }) => after === null);
    await (conflicts ? vscode.commands.executeCommand("starling.client.accept", target) : this.open(target));
  }

  /** Which proposal a diff shows. */
  of(uri: vscode.Uri | undefined): Reviewed | undefined {
    if (uri?.scheme !== PROPOSED) {
      return undefined;
    }
    const query = new URLSearchParams(uri.query);
    return { run: query.get("run") ?? "", proposal: Number(query.get("proposal")) };
  }

  /** The first line of the right side of a diff that differs; undefined for what shows no proposal. */
  firstChange(uri: vscode.Uri): number | undefined {
    return this.#firstChanges.get(uri.toString());
  }

  /** The proposal that the active editor shows. */
  active(): Reviewed | undefined {
    const tab = vscode.window.tabGroups.activeTabGroup.activeTab;
    return tab && this.#shownIn(tab);
  }

  dispose(): void {
    this.#listening.forEach((one) => one.dispose());
    if (this.#pending) {
      clearTimeout(this.#pending);
    }
    this.#changed.dispose();
  }

  #pair({ run, proposal }: Reviewed, file: ProposedFile, folder: string): [vscode.Uri, vscode.Uri, vscode.Uri] {
    const uri = vscode.Uri.parse(file.uri);
    const path = folder === "/" ? uri.path : `${folder}${pathIn(uri) ?? uri.path}`;
    const query = new URLSearchParams({ run, proposal: `${proposal}`, file: uri.path });
    const after = vscode.Uri.from({ scheme: PROPOSED, path, query: query.toString() });
    query.set("before", "");
    const nothing = vscode.Uri.from({ scheme: PROPOSED, path, query: query.toString() });
    this.#show(after, file);
    return [uri, file.creates ? nothing : uri, after];
  }

  #show(uri: vscode.Uri, file: ProposedFile): void {
    const text = proposedText(file);
    this.#firstChanges.set(uri.toString(), firstDifference(file.before, text));
    if (this.#texts.get(uri.toString()) !== text) {
      this.#texts.set(uri.toString(), text);
      this.#changed.fire(uri);
    }
  }

  async #files(target: Reviewed): Promise<ProposedFile[]> {
    const { files, version } = await this.#server.request<Proposed>("starling/proposal", target);
    this.#versions.set(keyOf(target), version);
    return files;
  }

  /** The version of a proposal that its diff shows; undefined for one that was not opened. */
  version(target: Reviewed): number | undefined {
    return this.#versions.get(keyOf(target));
  }

  /** The buffer changed under an open diff: what is proposed moves with it. */
  #soon(document: vscode.TextDocument): void {
    const shown = this.#shown().filter((uri) => fileOf(uri) === document.uri.path);
    if (document.uri.scheme !== "file" || shown.length === 0) {
      return;
    }
    if (this.#pending) {
      clearTimeout(this.#pending);
    }
    this.#pending = setTimeout(() => {
      for (const uri of shown) {
        void this.#refresh(uri);
      }
    }, REFRESH_MS);
  }

  async #refresh(uri: vscode.Uri): Promise<void> {
    const target = this.of(uri);
    const files = target ? await this.#files(target) : [];
    const file = files.find((one) => vscode.Uri.parse(one.uri).path === fileOf(uri));
    if (file) {
      this.#show(uri, file);
    }
  }

  /**
   * A diff is closed when its proposal was decided, whoever did it and wherever; and opened anew when
   * an answer to it would hold for more than it shows.
   */
  async #closeDecided(): Promise<void> {
    const shown = this.#tabs();
    const over = shown.filter(({ target }) => this.#runs.proposal(target.run, target.proposal)?.state !== "waiting");
    const grown = shown.filter(
      (one) => !over.includes(one) && this.#opened.get(keyOf(one.target)) !== this.#setOf(one.target),
    );
    if (over.length + grown.length > 0) {
      grown.forEach(({ target }) => this.#opened.set(keyOf(target), this.#setOf(target)));
      await vscode.window.tabGroups.close([...over, ...grown].map(({ tab }) => tab));
    }
    for (const { target } of grown) {
      await this.open(target);
    }
  }

  #title({ run, proposal: number }: Reviewed): string {
    const proposal = this.#runs.proposal(run, number);
    const set = [number, ...(proposal?.with ?? [])].sort((one, other) => one - other);
    return set.length === 1
      ? `Proposal #${number}: ${shortName(proposal?.symbol ?? "")}`
      : `Proposals ${set.map((one) => `#${one}`).join(" ")}`;
  }

  #tabs(): { tab: vscode.Tab; target: Reviewed }[] {
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    return tabs.flatMap((tab) => {
      const target = this.#shownIn(tab);
      return target ? [{ tab, target }] : [];
    });
  }

  #setOf({ run, proposal }: Reviewed): string {
    return (this.#runs.proposal(run, proposal)?.with ?? []).join(" ");
  }

  #shownIn(tab: vscode.Tab): Reviewed | undefined {
    if (tab.input instanceof vscode.TabInputTextDiff) {
      return this.of(tab.input.modified);
    }
    // The editor may add the number of files to the title.
    return [...this.#sets].find(([title]) => tab.label === title || tab.label.startsWith(`${title} (`))?.[1];
  }

  #tellContext(): void {
    void vscode.commands.executeCommand("setContext", "starling.reviewing", this.active() !== undefined);
  }

  /** Proposed texts that the editor holds. */
  #shown(): vscode.Uri[] {
    return vscode.workspace.textDocuments.map(({ uri }) => uri).filter(({ scheme }) => scheme === PROPOSED);
  }
}

/** The right side of a diff: in a conflict the text as it was proposed, whatever was typed since. */
function proposedText(file: ProposedFile): string {
  return file.after ?? file.proposed ?? file.before;
}

/** The first line in which the second of two texts differs. */
function firstDifference(before: string, after: string): number {
  const [old, now] = [before.split("\n"), after.split("\n")];
  const line = now.findIndex((text, index) => text !== old[index]);
  return line === -1 ? 0 : line;
}

function keyOf({ run, proposal }: Reviewed): string {
  return `${run} ${proposal}`;
}

/** The path of the file that a proposed text is of. */
function fileOf(uri: vscode.Uri): string | null {
  return new URLSearchParams(uri.query).get("file");
}
