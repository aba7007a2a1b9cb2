/** The panel in which tasks and questions are written, and questions are answered. */

import { randomUUID } from "node:crypto";
import * as vscode from "vscode";
import { type MentionItem, remembered } from "../model/composer.ts";
import { type AnswerParams, Conversation, type Turn } from "../model/conversation.ts";
import { activeFolder, chooseFolder, type Folder, openLine, type SymbolPlace } from "./place.ts";
import type { Server } from "./server.ts";
import { options, page } from "./webview.ts";

type Wish =
  | { wish: "ready" }
  | { wish: "ask"; question: string }
  | { wish: "run"; task: string }
  | { wish: "complete"; mention: string }
  | { wish: "stop" }
  | { wish: "new" }
  | { wish: "about_all" }
  | { wish: "task"; text: string }
  | { wish: "open"; path: string; line: number };

/** The conversation of the window before. */
interface Kept {
  turns: Turn[];
  folder: string;
}

/** A task that is to be written. */
export interface TaskDraft {
  folder: vscode.WorkspaceFolder;
  text: string;
  /** Where the run begins; empty where Starling finds the symbols. */
  begin: string;
}

export type StartTask = (folder: vscode.WorkspaceFolder, what: { task: string; begin?: string[] }) => Promise<void>;

/** Pieces of an answer are gathered for so long. */
const GATHER_MS = 50;
/** Where the conversation is kept over a reload of the window, and how much of it. */
const KEPT = "starling.conversation";
const KEPT_TURNS = 20;
/** Where the tasks and questions that were sent are kept. */
const HISTORY = "starling.history";

export class AskView implements vscode.WebviewViewProvider, vscode.Disposable {
  readonly #extension: vscode.Uri;
  readonly #memory: vscode.Memento;
  readonly #server: Server;
  readonly #listening: vscode.Disposable[];
  #conversation: Conversation;
  #view: vscode.WebviewView | null = null;
  #symbol = "";
  /** The folder that the conversation is about: the first question decides. */
  #folder: Folder;
  /** How often the user has come to ask: the page takes the focus when it rises, and only then. */
  #come = 0;
  /** What the user has come to write. */
  #mode: "task" | "question" = "question";
  #draft: Partial<TaskDraft> = {};
  /** Whether the panel was opened for a task alone: it is closed again when that is sent. */
  #forTask = false;
  /** Begins a run with what was written. */
  startTask: StartTask = async () => undefined;
  #pending: NodeJS.Timeout | null = null;

  constructor({ extensionUri, workspaceState }: vscode.ExtensionContext, server: Server) {
    this.#extension = extensionUri;
    this.#memory = workspaceState;
    this.#conversation = new Conversation(randomUUID(), this.#kept.turns);
    this.#server = server;
    server.on<AnswerParams>("starling/answer", (params) => {
      if (this.#conversation.take(params)) {
        this.#soon();
      }
    });
    this.#listening = [
      vscode.window.registerWebviewViewProvider("starling.ask", this, {
        webviewOptions: { retainContextWhenHidden: true },
      }),
      server.onState((state) => {
        if (state.kind !== "running" && this.#conversation.busy) {
          this.#conversation.fail("The server has ended before the answer.");
        }
        this.#soon();
      }),
    ];
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.#view = view;
    view.webview.options = options(this.#extension);
    view.webview.html = page(view.webview, this.#extension, "ask", "Tasks and questions");
    view.webview.onDidReceiveMessage((wish: Wish) => void this.#grant(wish));
    view.onDidDispose(() => {
      this.#view = null;
    });
  }

  /** Opens the panel to write a task. */
  async compose(draft: TaskDraft): Promise<void> {
    this.#forTask = !this.#view?.visible && this.#conversation.turns.length === 0;
    this.#mode = "task";
    this.#draft = draft;
    this.#come++;
    await vscode.commands.executeCommand("starling.ask.focus");
    this.#soon();
  }

  /** Opens the panel, with what the question is about. */
  async focus(about: SymbolPlace | undefined): Promise<void> {
    const { folders } = this.#server;
    const named = folders.find(({ uri }) => uri.toString() === about?.folder);
    // What was said before the window was loaded anew is about the same folder.
    this.#folder ??= folders.find(({ uri }) => uri.toString() === this.#kept.folder);
    if (!this.#folder || (named && named.uri.toString() !== this.#folder.uri.toString())) {
      this.#folder = named ?? activeFolder() ?? (await chooseFolder("Starling: Ask", folders));
      await this.#begin();
    }
    this.#symbol = about?.symbol ?? "";
    this.#mode = "question";
    this.#draft = {};
    this.#come++;
    await vscode.commands.executeCommand("starling.ask.focus");
    this.#soon();
  }

  dispose(): void {
    this.#listening.forEach((one) => one.dispose());
    if (this.#pending) {
      clearTimeout(this.#pending);
    }
  }

  async #grant(wish: Wish): Promise<void> {
    switch (wish.wish) {
      case "ready":
        return this.#soon();
      case "ask":
        await this.#remember(wish.question);
        return this.#ask(wish.question);
      case "run":
        return this.#run(wish.task);
      case "complete":
        return this.#complete(wish.mention);
      case "stop":
        return this.#stop();
      case "new":
        this.#folder = undefined;
        this.#mode = "question";
        this.#draft = {};
        await this.#begin();
        await this.#memory.update(KEPT, undefined);
        this.#come++;
        return this.#soon();
      case "about_all":
        this.#symbol = "";
        this.#draft = { ...this.#draft, begin: "" };
        return this.#soon();
      case "task":
        return vscode.commands.executeCommand("starling.client.task", wish.text);
      case "open":
        return openLine(wish.path, wish.line, this.#folder).catch(() => {
          void vscode.window.showWarningMessage(`${wish.path} is not in this project any more.`);
        });
    }
  }

  get #kept(): Kept {
    return this.#memory.get<Kept>(KEPT, { turns: [], folder: "" });
  }

  async #ask(question: string): Promise<void> {
    const conversation = this.#conversation;
    const symbol = this.#symbol;
    conversation.begin(question, symbol);
    this.#soon();
    try {
      const about = symbol === "" ? {} : { symbol };
      this.#folder ??= activeFolder() ?? (await chooseFolder("Starling: Ask", this.#server.folders));
      const folder = this.#folder?.uri.toString();
      const asked = { question, session: conversation.session, ...about, ...(folder ? { folder } : {}) };
      const { ask } = await this.#server.execute<{ ask: string }>("starling.ask", asked);
      conversation.taken(ask);
    } catch (error) {
      conversation.fail(error instanceof Error ? error.message : String(error));
    }
    this.#soon();
  }

  async #run(task: string): Promise<void> {
    await this.#remember(task);
    const { folders } = this.#server;
    const folder = this.#draft.folder ?? activeFolder() ?? (await chooseFolder("Starling: New Task", folders));
    const { begin } = this.#draft;
    const close = this.#forTask;
    this.#forTask = false;
    if (!folder) {
      return;
    }
    try {
      await this.startTask(folder, begin ? { task, begin: [begin] } : { task });
      this.#draft = {};
      if (close) {
        await vscode.commands.executeCommand("workbench.action.closeAuxiliaryBar");
      }
    } catch (error) {
      void vscode.window.showErrorMessage(`Starling: ${error instanceof Error ? error.message : String(error)}`);
    }
    this.#soon();
  }

  async #complete(mention: string): Promise<void> {
    const folder =
      (this.#mode === "task" ? this.#draft.folder : this.#folder) ?? activeFolder() ?? this.#server.folders[0];
    const about = { mention, folder: folder?.uri.toString() };
    try {
      const { items } = await this.#server.request<{ items: MentionItem[] }>("starling/mentions", about);
      void this.#view?.webview.postMessage({ mention, items });
    } catch (error) {
      this.#server.log.debug(`starling/mentions: ${error}`);
    }
  }

  get #history(): string[] {
    return this.#memory.get<string[]>(HISTORY, []);
  }

  async #remember(text: string): Promise<void> {
    await this.#memory.update(HISTORY, remembered(this.#history, text));
  }

  async #begin(): Promise<void> {
    await this.#stop();
    this.#conversation = new Conversation(randomUUID());
  }

  async #stop(): Promise<void> {
    const ask = this.#conversation.going;
    if (ask !== null) {
      await this.#server
        .execute("starling.cancel", { ask })
        .catch((error: unknown) => this.#server.log.warn(String(error)));
    }
  }

  #soon(): void {
    this.#pending ??= setTimeout(() => {
      this.#pending = null;
      if (!this.#conversation.busy) {
        const turns = this.#conversation.turns.slice(-KEPT_TURNS);
        void this.#memory.update(KEPT, { turns, folder: this.#folder?.uri.toString() ?? this.#kept.folder });
      }
      const running = this.#server.state.kind === "running";
      void this.#view?.webview.postMessage({
        turns: this.#conversation.turns,
        busy: this.#conversation.busy,
        symbol: this.#symbol,
        begin: this.#draft.begin ?? "",
        mode: this.#mode,
        draft: this.#draft.text ?? "",
        history: this.#history,
        come: this.#come,
        unable: running ? "" : "The server is not running.",
      });
    }, GATHER_MS);
  }
}
