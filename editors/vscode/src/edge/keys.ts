/** Keys of models: kept in the editor's secret store, given to the server as environment variables. */

import * as vscode from "vscode";
import type { Server } from "./server.ts";

const NAMES = "starling.keys";

/** All stored keys by the names of their variables. */
export async function storedKeys(context: vscode.ExtensionContext): Promise<Record<string, string>> {
  const names = context.globalState.get<string[]>(NAMES, []);
  const pairs = await Promise.all(names.map(async (name) => [name, await context.secrets.get(name)] as const));
  return Object.fromEntries(pairs.flatMap(([name, value]) => (value ? [[name, value]] : [])));
}

/** Asks for a key, stores it (or forgets it, when it is empty), and starts the server anew. */
export async function askForKey(context: vscode.ExtensionContext, server: Server): Promise<"changed" | "left"> {
  const title = "Starling: Set API Key";
  const name = await vscode.window.showInputBox({
    title,
    prompt: "The environment variable that holds it: as it is for openai:MODEL, or what your configuration names.",
    value: "OPENAI_API_KEY",
    ignoreFocusOut: true,
    validateInput: (text) => (/^[A-Za-z_]\w*$/.test(text) ? undefined : "Letters, digits and underscores."),
  });
  if (name === undefined) {
    return "left";
  }
  const value = await vscode.window.showInputBox({
    title,
    prompt: `The value of ${name}. It is kept in the editor's secret store. Empty: it is forgotten.`,
    password: true,
    ignoreFocusOut: true,
  });
  if (value === undefined) {
    return "left";
  }
  const others = context.globalState.get<string[]>(NAMES, []).filter((other) => other !== name);
  await (value ? context.secrets.store(name, value) : context.secrets.delete(name));
  await context.globalState.update(NAMES, value ? [...others, name] : others);
  await server.start();
  void vscode.window.showInformationMessage(`Starling: ${name} is ${value ? "stored" : "forgotten"}.`);
  return "changed";
}
