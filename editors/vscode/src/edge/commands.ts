/** The commands of the palette, the menus and the lenses. */

import * as vscode from "vscode";
import { runParameters } from "../model/arguments.ts";
import type { Target } from "../model/outline.ts";
import type { Placed } from "../model/route.ts";
import { shortName } from "../model/symbol.ts";
import type { AskView } from "./askView.ts";
import type { Editing } from "./editing.ts";
import { askForKey } from "./keys.ts";
import { menu } from "./menu.ts";
import { chooseModel } from "./models.ts";
import type { PictureView } from "./pictureView.ts";
import { activeFolder, chooseFolder, openSymbol, pathIn, symbolAt } from "./place.ts";
import type { Restarts } from "./restarts.ts";
import type { Review } from "./review.ts";
import type { Runs } from "./runs.ts";
import type { Remedies } from "./remedies.ts";
import type { Server } from "./server.ts";
import { changed } from "./settings.ts";
import type { Told } from "./told.ts";
import type { Targets } from "./targets.ts";

export interface Parts {
  context: vscode.ExtensionContext;
  server: Server;
  runs: Runs;
  review: Review;
  editing: Editing;
  targets: Targets;
  picture: PictureView;
  ask: AskView;
  texts: Told;
  remedies: Remedies;
  restarts: Restarts;
}

/** What a lens or a code action says of a symbol. */
interface SymbolArgument extends Placed {
  symbol?: string;
}

export function registerCommands(parts: Parts): vscode.Disposable[] {
  const { server, runs, targets, picture, ask } = parts;
  ask.startTask = (folder, what) => run(parts.remedies, folder, what);
  const commands: Record<string, (argument?: unknown) => unknown> = {
    task: (argument) => newTask(parts, typeof argument === "string" ? argument : ""),
    change: (argument) => change(parts, argument as SymbolArgument | undefined),
    ask: (argument) => askAbout(ask, argument as SymbolArgument | undefined),
    accept: (argument) => accept(parts, argument),
    acceptAll: (argument) => {
      const run = targets.given(argument)?.run;
      return server.execute("starling.acceptAll", run === undefined ? {} : { run });
    },
    reject: async (argument) =>
      withTarget(targets.waiting(argument), (target) =>
        decide(parts, target, (about, name) => reject(parts, target, about, name)),
      ),
    steer: (argument) => steer(parts, argument),
    edit: async (argument) =>
      withTarget(targets.waiting(argument), async ({ run, proposal }) => {
        if (proposal !== undefined) {
          await parts.editing.open({ run, proposal });
        }
      }),
    diff: (argument) => showDiff(parts, argument),
    why: (argument) => showWhy(parts, argument),
    next: () => reviewNext(parts),
    again: async (argument) => withTarget(targets.ended(argument), ({ run }) => parts.remedies.again(run)),
    stop: async (argument) =>
      withTarget(targets.going(argument), ({ run }) => server.execute("starling.cancel", { run })),
    undo: async (argument) => withTarget(targets.changed(argument), (target) => undo(server, target)),
    open: async (argument) =>
      withTarget(Promise.resolve(targets.given(argument)), ({ run, symbol }) =>
        openSymbol(symbol ?? "", runs.folderOf(run)),
      ),
    picture: (argument) => picture.show(targets.given(argument)?.run),
    clear: () => runs.clear(),
    restart: () => parts.restarts.ask(),
    log: () => server.log.show(),
    key: () => askForKey(parts.context, server),
    model: () => chooseModel(server),
    menu: () => menu(server, runs),
  };
  return Object.entries(commands).map(([name, run]) =>
    vscode.commands.registerCommand(`starling.client.${name}`, async (argument?: unknown) => {
      try {
        await run(argument);
      } catch (error) {
        void vscode.window.showErrorMessage(`Starling: ${error instanceof Error ? error.message : String(error)}`);
      }
    }),
  );
}

async function withTarget(
  found: Promise<Target | undefined>,
  act: (target: Target) => Promise<unknown>,
): Promise<void> {
  const target = await found;
  if (target) {
    await act(target);
  }
}

async function newTask({ server, ask }: Parts, value: string): Promise<void> {
  const folder = await chooseFolder("Starling: New Task", server.folders);
  if (!folder) {
    return;
  }
  await ask.compose({ folder, text: value, begin: "" });
}

async function change({ server, remedies, ask }: Parts, argument: SymbolArgument | undefined): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const place = editor && selected(editor);
  // The box is there before the symbol is found: what is typed at once goes into it, never into the source.
  const symbolHere = argument ?? (editor && symbolAt(editor.document.uri, editor.selection.active));
  const written = await taskBox(symbolHere, place ?? "the project");
  if (!written || (written.task === "" && !written.more)) {
    return;
  }
  const { task } = written;
  const found = await symbolHere;
  const symbol = found?.symbol;
  const folder =
    server.folders.find(({ uri }) => uri.toString() === found?.folder) ??
    activeFolder() ??
    (await chooseFolder("Starling: Change", server.folders));
  if (!folder) {
    return;
  }
  if (written.more) {
    await ask.compose({ folder, text: symbol || !place ? task : `${task} (${place})`, begin: symbol ?? "" });
    return;
  }
  await run(remedies, folder, symbol ? { task, begin: [symbol] } : { task: place ? `${task} (${place})` : task });
}

/** What was written into the box; `more`: it goes on in the panel, over several lines. */
interface Written {
  task: string;
  more: boolean;
}

const MORE = { iconPath: new vscode.ThemeIcon("multiple-windows"), tooltip: "Write Several Lines" };

/** Asks what to change; the title names the symbol as soon as it is found. */
async function taskBox(
  symbol: SymbolArgument | Thenable<SymbolArgument | undefined> | undefined,
  otherwise: string,
): Promise<Written | undefined> {
  const box = vscode.window.createInputBox();
  box.title = "Starling: Change …";
  box.prompt = "What is to change? You see every change, with its tests, before it is made.";
  box.ignoreFocusOut = true;
  box.buttons = [MORE];
  const answered = new Promise<Written | undefined>((resolve) => {
    const end = (more: boolean) => {
      resolve({ task: box.value.trim(), more });
      box.hide();
    };
    box.onDidAccept(() => end(false));
    box.onDidTriggerButton(() => end(true));
    box.onDidHide(() => {
      resolve(undefined);
      box.dispose();
    });
  });
  box.show();
  const named = (found: SymbolArgument | undefined) => {
    box.title = `Starling: Change ${found?.symbol ? shortName(found.symbol) : otherwise}`;
  };
  void Promise.resolve(symbol).then(named, () => named(undefined));
  return answered;
}

/** `parcels/quote.py, lines 3 to 9` */
function selected(editor: vscode.TextEditor): string | undefined {
  const path = pathIn(editor.document.uri);
  const { start, end } = editor.selection;
  const lines = start.line === end.line ? `line ${start.line + 1}` : `lines ${start.line + 1} to ${end.line + 1}`;
  return path && `${path}, ${lines}`;
}

async function run(
  remedies: Remedies,
  folder: vscode.WorkspaceFolder,
  what: { task: string; begin?: string[] },
): Promise<void> {
  const given = runParameters(changed(folder));
  await remedies.begin({ ...given, ...what, folder: folder.uri.toString() });
  await vscode.commands.executeCommand("starling.runs.focus");
}

async function askAbout(ask: AskView, argument: SymbolArgument | undefined): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  await ask.focus(argument ?? (editor && (await symbolAt(editor.document.uri, editor.selection.active))));
}

/** What the server is told of a proposal or an intent. */
function about({ run, proposal, version, symbol, intent }: Target): object {
  return proposal === undefined ? { run, symbol, intent } : { run, proposal, version };
}

function nameIn(runs: Runs, { run, proposal, symbol }: Target): string {
  const known = proposal === undefined ? undefined : runs.proposal(run, proposal);
  const name = shortName(known?.symbol ?? symbol ?? "");
  return proposal === undefined ? name : `#${proposal} ${name}`.trim();
}

/** Accepts what is on the screen; opens the diff of a proposal that is not. */
async function accept(parts: Parts, argument: unknown): Promise<void> {
  const found = await parts.targets.toAccept(argument);
  if (!found) {
    return;
  }
  const { target, shown } = found;
  if (!shown && target.proposal !== undefined) {
    await parts.review.open({ run: target.run, proposal: target.proposal });
    return;
  }
  await decide(parts, target, async (about) => parts.server.execute("starling.accept", about));
}

/** Answers a proposal or an intent; from an open diff goes on to the next one. */
async function decide(
  { runs, review }: Parts,
  target: Target,
  answer: (about: object, name: string) => Promise<unknown>,
): Promise<void> {
  const fromDiff = review.active();
  const set = runs.proposal(target.run, target.proposal ?? -1)?.with ?? [];
  const isShown = fromDiff && fromDiff.run === target.run && fromDiff.proposal === target.proposal;
  const version = target.version ?? (isShown ? review.version(fromDiff) : undefined);
  const shown = version === undefined ? target : { ...target, version };
  const answered = await answer(about(shown), nameIn(runs, target));
  if (answered !== "given up" && fromDiff) {
    const next = runs.waiting.find(
      ({ story, proposal }) =>
        story.id === target.run && proposal.number !== target.proposal && !set.includes(proposal.number),
    );
    if (next) {
      await review.open({ run: next.story.id, proposal: next.proposal.number });
    }
  }
}

async function reject({ server, runs }: Parts, { run }: Target, about: object, name: string): Promise<unknown> {
  const reason = await vscode.window.showInputBox({
    title: `Starling: Reject ${name}`,
    prompt: runs.get(run)?.interrupted
      ? "Why? Its agent is gone with the server: the reason is kept in the run's log."
      : "Why? Its agent reads the reason and tries again.",
    ignoreFocusOut: true,
    validateInput: (text) => (text.trim() === "" ? "A few words are enough; Escape leaves it waiting." : undefined),
  });
  return reason === undefined ? "given up" : server.execute("starling.reject", { ...about, reason });
}

async function steer({ server, runs, targets }: Parts, argument: unknown): Promise<void> {
  const target = targets.given(argument) ?? (await targets.going(undefined));
  if (!target) {
    return;
  }
  const text = await vscode.window.showInputBox({
    title: `Starling: Steer ${nameIn(runs, target) || "all agents"}`,
    prompt: "What should be done differently?",
    ignoreFocusOut: true,
  });
  if (text?.trim()) {
    await server.execute("starling.steer", { ...about(target), text });
  }
}

async function showDiff(parts: Parts, argument: unknown): Promise<void> {
  const target = await parts.targets.waiting(argument);
  if (target?.proposal === undefined) {
    return;
  }
  const { run, proposal } = target;
  const known = parts.runs.proposal(run, proposal);
  await (known && known.state !== "waiting" ? showWhy(parts, target) : parts.review.open({ run, proposal }));
}

async function showWhy({ server, runs, targets, texts }: Parts, argument: unknown): Promise<void> {
  const target = await targets.waiting(argument);
  const known = target?.proposal === undefined ? undefined : runs.proposal(target.run, target.proposal);
  if (!target || !known) {
    return;
  }
  const about = { run: target.run, proposal: known.number };
  const { summary } = await server.request<{ summary: string }>("starling/proposal", about);
  await texts.show(`Why #${known.number} ${shortName(known.symbol)}`, summary);
}

/** Opens the proposal after the one on the screen; without one there, the first. */
async function reviewNext({ runs, review }: Parts): Promise<void> {
  const shown = review.active();
  const waiting = runs.waiting;
  const index = waiting.findIndex(
    ({ story, proposal }) => story.id === shown?.run && proposal.number === shown.proposal,
  );
  const next = waiting[index + 1] ?? waiting[0];
  if (next) {
    await review.open({ run: next.story.id, proposal: next.proposal.number });
  } else {
    void vscode.window.showInformationMessage("Nothing waits for review.");
  }
}

async function undo(server: Server, { run, proposal }: Target): Promise<void> {
  await server.execute("starling.undo", proposal === undefined ? { run } : { run, proposal });
}
