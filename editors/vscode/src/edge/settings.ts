/** The settings `starling.*`. */

import * as vscode from "vscode";
import type { Changed } from "../model/arguments.ts";

const RUN = [
  "run.driver",
  "run.approve",
  "run.askIntent",
  "limits.calls",
  "limits.tokens",
  "limits.dollars",
  "limits.seconds",
  "limits.agents",
  "tests.command",
];

/** Settings that count only when the server starts. The model is named by each run and each question. */
const AT_START = ["path", "config", "environment"];

export function setting<T>(key: string, otherwise: T): T {
  return vscode.workspace.getConfiguration("starling").get(key, otherwise) ?? otherwise;
}

/** The settings of a run in a folder that the user has changed. */
export function changed(folder: vscode.WorkspaceFolder): Changed {
  const settings = vscode.workspace.getConfiguration("starling", folder.uri);
  const given = RUN.map((key): [string, unknown] => {
    const found = settings.inspect(key);
    const chosen = found?.workspaceFolderValue ?? found?.workspaceValue ?? found?.globalValue;
    return [key, chosen ?? undefined];
  });
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

export function needsRestart(event: vscode.ConfigurationChangeEvent): boolean {
  return AT_START.some((key) => event.affectsConfiguration(`starling.${key}`));
}
