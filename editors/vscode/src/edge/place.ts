/** Symbols and the places where they stand in this editor. */

import * as vscode from "vscode";
import { fileOf, nameOf } from "../model/symbol.ts";

type Symbols = vscode.DocumentSymbol[] | undefined;

function root(): vscode.Uri | undefined {
  return vscode.workspace.workspaceFolders?.[0]?.uri;
}

/** A file of the project by its path in it. */
export function uriOf(path: string): vscode.Uri {
  const folder = root();
  return folder ? vscode.Uri.joinPath(folder, path) : vscode.Uri.file(path);
}

/** The path of a file in the project; undefined for one outside. */
export function pathIn(uri: vscode.Uri): string | undefined {
  const path = vscode.workspace.asRelativePath(uri, false);
  return root() && path !== uri.fsPath ? path : undefined;
}

/** The symbol path at a place, as far as the editor knows the symbols of the file; else the file itself. */
export async function symbolAt(uri: vscode.Uri, position: vscode.Position): Promise<string | undefined> {
  const path = pathIn(uri);
  if (path === undefined) {
    return undefined;
  }
  const names: string[] = [];
  let level = await symbolsOf(uri);
  for (;;) {
    const inside = level?.find((symbol) => isOwner(symbol) && symbol.range.contains(position));
    if (!inside) {
      return names.length > 0 ? `${path}::${names.join(".")}` : undefined;
    }
    names.push(inside.name);
    level = inside.children;
  }
}

function isOwner({ kind }: vscode.DocumentSymbol): boolean {
  const { Class, Function, Method, Constructor, Property } = vscode.SymbolKind;
  return [Class, Function, Method, Constructor, Property].includes(kind);
}

async function symbolsOf(uri: vscode.Uri): Promise<Symbols> {
  const found = await vscode.commands.executeCommand<Symbols>("vscode.executeDocumentSymbolProvider", uri);
  return found?.[0] && "range" in found[0] ? found : undefined;
}

/** Shows a symbol where it stands. */
export async function openSymbol(symbol: string): Promise<void> {
  const document = await vscode.workspace.openTextDocument(uriOf(fileOf(symbol)));
  const editor = await vscode.window.showTextDocument(document);
  const line = await lineOf(document, nameOf(symbol));
  reveal(editor, line);
}

/** Shows a line, counted from 1. */
export async function openLine(path: string, line: number): Promise<void> {
  const document = await vscode.workspace.openTextDocument(uriOf(path));
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
