/** Symbols and the places where they stand in this editor. */

import * as vscode from "vscode";
import { fileOf, nameOf } from "../model/symbol.ts";

type Symbols = vscode.DocumentSymbol[] | undefined;

/** A folder of the window; of a run that is gone, undefined. */
export type Folder = vscode.WorkspaceFolder | undefined;

/** A file of a folder by its path in it. */
export function uriOf(path: string, folder: Folder): vscode.Uri {
  return folder ? vscode.Uri.joinPath(folder.uri, path) : vscode.Uri.file(path);
}

/** The path of a file in its folder; undefined for one outside. */
export function pathIn(uri: vscode.Uri): string | undefined {
  return vscode.workspace.getWorkspaceFolder(uri) && vscode.workspace.asRelativePath(uri, false);
}

/** The folder that something is to be done in: the only one, that of the symbol, else the user is asked. */
export async function chooseFolder(title: string, folders: vscode.WorkspaceFolder[]): Promise<Folder> {
  if (folders.length < 2) {
    return folders[0];
  }
  const active = activeFolder()?.uri.toString();
  const choices = folders.map((folder) => ({ label: folder.name, description: folder.uri.fsPath, folder }));
  // That of the open file comes first.
  const isActive = ({ folder }: (typeof choices)[number]) => Number(folder.uri.toString() === active);
  choices.sort((one, other) => isActive(other) - isActive(one));
  return (await vscode.window.showQuickPick(choices, { title, placeHolder: "In which folder?" }))?.folder;
}

/** The folder of the open file. */
export function activeFolder(): Folder {
  const uri = vscode.window.activeTextEditor?.document.uri;
  return uri && vscode.workspace.getWorkspaceFolder(uri);
}

/** A symbol, and the address of the folder that its path is in. */
export interface SymbolPlace {
  symbol?: string;
  folder?: string;
}

/** The symbol at a place, by the server's own code action on it; none in a file that has none. */
export async function symbolAt(uri: vscode.Uri, position: vscode.Position): Promise<SymbolPlace | undefined> {
  if (pathIn(uri) === undefined) {
    return undefined;
  }
  const range = new vscode.Range(position, position);
  const kind = vscode.CodeActionKind.RefactorRewrite.value;
  const actions = await vscode.commands.executeCommand<(vscode.CodeAction | vscode.Command)[]>(
    "vscode.executeCodeActionProvider",
    uri,
    range,
    kind,
  );
  const commands = actions.map((action) => (typeof action.command === "string" ? action : action.command));
  const change = commands.find((command) => command?.command === "starling.client.change") as
    vscode.Command | undefined;
  return change?.arguments?.[0];
}

async function symbolsOf(uri: vscode.Uri): Promise<Symbols> {
  const found = await vscode.commands.executeCommand<Symbols>("vscode.executeDocumentSymbolProvider", uri);
  return found?.[0] && "range" in found[0] ? found : undefined;
}

/** Shows a symbol where it stands. */
export async function openSymbol(symbol: string, folder: Folder): Promise<void> {
  const document = await vscode.workspace.openTextDocument(uriOf(fileOf(symbol), folder));
  const editor = await vscode.window.showTextDocument(document);
  const line = await lineOf(document, nameOf(symbol));
  reveal(editor, line);
}

/** Shows a line, counted from 1. */
export async function openLine(path: string, line: number, folder: Folder): Promise<void> {
  const document = await vscode.workspace.openTextDocument(uriOf(path, folder));
  const editor = await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.One });
  reveal(editor, line - 1);
}

function reveal(editor: vscode.TextEditor, line: number): void {
  const start = new vscode.Position(Math.min(Math.max(line, 0), editor.document.lineCount - 1), 0);
  editor.selection = new vscode.Selection(start, start);
  editor.revealRange(new vscode.Range(start, start), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
}

/** By the editor's own symbols, else by the word that defines it. */
async function lineOf(document: vscode.TextDocument, name: string): Promise<number> {
  const parts = name
    .split(".")
    .filter(Boolean)
    .map((part) => part.replace(/#\d+$/, ""));
  let level = await symbolsOf(document.uri);
  let line: number | undefined;
  for (const part of parts) {
    const found = level?.find((symbol) => symbol.name === part);
    line = found?.selectionRange.start.line ?? line;
    level = found?.children;
  }
  const last = parts.at(-1);
  if (line !== undefined || last === undefined) {
    return line ?? 0;
  }
  const definition = new RegExp(`\\b(?:def|class|function|fn|func|const|let)\\s+${last.replace(/\W/g, "\\$&")}\\b`);
  const lines = document.getText().split("\n");
  return Math.max(
    0,
    lines.findIndex((text) => definition.test(text)),
  );
}
