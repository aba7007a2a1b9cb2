/** What the status bar offers. */

import * as vscode from "vscode";
import type { Runs } from "./runs.ts";
import type { Server } from "./server.ts";

interface Entry extends vscode.QuickPickItem {
  command: string;
}

export async function menu(server: Server, runs: Runs): Promise<void> {
  const waiting = runs.waiting.length;
  const going = runs.all.some((story) => story.running);
  const entry = (icon: string, label: string, command: string): Entry => ({ label: `$(${icon}) ${label}`, command });
  const running = server.state.kind === "running";
  const choices = [
    ...(waiting > 0 ? [entry("git-pull-request", `Review ${waiting} waiting`, "next")] : []),
    ...(going ? [entry("debug-stop", "Stop the run", "stop")] : []),
    ...(running ? [entry("add", "New task…", "task"), entry("comment", "Ask about the code…", "ask")] : []),
    ...(runs.all.length > 0
      ? [entry("type-hierarchy", "Show the picture of the run", "picture"), entry("discard", "Undo a run", "undo")]
      : []),
    ...(running ? [entry("server-process", "Choose the model…", "model")] : []),
    entry("key", "Set API key…", "key"),
    entry("refresh", "Restart the server", "restart"),
    entry("output", "Show the log", "log"),
  ];
  const chosen = await vscode.window.showQuickPick(choices, { title: "Starling" });
  if (chosen) {
    await vscode.commands.executeCommand(`starling.client.${chosen.command}`);
  }
}
