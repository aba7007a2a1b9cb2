/** Starling in VS Code: a client of the server, and the views of what it does. */

import * as vscode from "vscode";
import { AskView } from "./edge/askView.ts";
import { registerCommands } from "./edge/commands.ts";
import { Editing } from "./edge/editing.ts";
import { storedKeys } from "./edge/keys.ts";
import { Notifier } from "./edge/notify.ts";
import { Offers } from "./edge/offers.ts";
import { PictureView } from "./edge/pictureView.ts";
import { Presence } from "./edge/presence.ts";
import { Remedies } from "./edge/remedies.ts";
import { Reasons } from "./edge/reasons.ts";
import { Review } from "./edge/review.ts";
import { Restarts } from "./edge/restarts.ts";
import { Runs } from "./edge/runs.ts";
import { Server, type ServerState } from "./edge/server.ts";
import { Status } from "./edge/status.ts";
import { Targets } from "./edge/targets.ts";
import { TestsView } from "./edge/testsView.ts";
import { Told } from "./edge/told.ts";
import { Tree } from "./edge/tree.ts";

let server: Server | null = null;

export function activate(context: vscode.ExtensionContext): void {
  const started = new Server(context, () => storedKeys(context));
  server = started;
  const runs = new Runs(started);
  const review = new Review(started, runs);
  const editing = new Editing(started, runs, review);
  const targets = new Targets(runs, review);
  const picture = new PictureView(context.extensionUri, runs);
  const ask = new AskView(context, started);
  const tree = new Tree(runs);
  const texts = new Told();
  const restarts = new Restarts(started, runs);
  const remedies = new Remedies(context, started);
  context.subscriptions.push(
    started,
    runs,
    review,
    editing,
    picture,
    ask,
    tree,
    texts,
    remedies,
    new Status(started, runs),
    new Notifier(runs, review, tree),
    new TestsView(runs),
    new Presence(runs),
    new Reasons(runs, review),
    new Offers(started, runs),
    ...registerCommands({
      context,
      server: started,
      runs,
      review,
      editing,
      targets,
      picture,
      ask,
      texts,
      remedies,
      restarts,
    }),
    started.onState(tellOfTrouble),
    vscode.workspace.onDidGrantWorkspaceTrust(() => void started.start()),
    restarts,
  );
  void started.start();
}

export async function deactivate(): Promise<void> {
  await server?.stop();
}

function tellOfTrouble(state: ServerState): void {
  void vscode.commands.executeCommand("setContext", "starling.server", state.kind);
  if (state.kind === "missing") {
    void tellMissing(state.message);
  }
}

async function tellMissing(message: string): Promise<void> {
  const answer = await vscode.window.showErrorMessage(`Starling: ${message}`, "Open Setting");
  if (answer === "Open Setting") {
    await vscode.commands.executeCommand("workbench.action.openSettings", "starling.path");
  }
}
