/** The choice of a model: one list of what is configured, what runs here, and whose keys are there. */

import * as vscode from "vscode";
import { type ModelChoice, type ModelsReply, modelChoices } from "../model/models.ts";
import { activeFolder } from "./place.ts";
import type { Server } from "./server.ts";
import { setting } from "./settings.ts";

const TITLE = "Starling: Choose a Model";

interface Entry extends vscode.QuickPickItem {
  choice: ModelChoice;
}

/** Lets the user choose; the choice holds from the next run on. */
export async function chooseModel(server: Server): Promise<"changed" | "left"> {
  const before = setting("model", "");
  const name = await pick(modelChoices(await known(server), before));
  const model = name?.trim();
  if (!model || model === before) {
    return "left";
  }
  await vscode.workspace.getConfiguration("starling").update("model", model, vscode.ConfigurationTarget.Global);
  return "changed";
}

async function known(server: Server): Promise<ModelsReply> {
  const folder = activeFolder() ?? server.folders[0];
  const nothing = { chosen: null, models: [], keys: [] };
  try {
    return folder ? await server.inFolder<ModelsReply>(folder, "starling/models") : nothing;
  } catch (error) {
    server.log.warn(`starling/models: ${error}`);
    return nothing;
  }
}

/** The chosen name; what is typed and not in the list is a name, too. */
async function pick(choices: ModelChoice[]): Promise<string | undefined> {
  const box = vscode.window.createQuickPick<Entry>();
  const entries = choices.map((choice): Entry => ({ ...choice, choice }));
  box.title = TITLE;
  box.placeholder = "Pick one, or type openai:MODEL, gguf:PATH or a name from your config.toml";
  box.matchOnDescription = true;
  box.ignoreFocusOut = true;
  box.items = entries;
  box.activeItems = entries.filter(({ choice }) => choice.present);
  box.onDidChangeValue((value) => {
    const typed = value.trim();
    const isListed = typed === "" || choices.some(({ name }) => name === typed);
    const choice = { label: typed, description: "use this name", name: typed, present: false };
    box.items = isListed ? entries : [{ ...choice, alwaysShow: true, choice }, ...entries];
  });
  return new Promise((resolve) => {
    box.onDidAccept(() => {
      const choice = box.selectedItems[0]?.choice;
      if (choice && choice.name.endsWith(":")) {
        // The rest of the name is typed.
        box.value = choice.name;
        return;
      }
      if (choice?.name === "") {
        const text =
          "To use a model of this provider, run `starling init` in a terminal once; it is in this list then.";
        void vscode.window.showInformationMessage(`Starling: ${text}`);
      }
      // Enter may come before the list holds what was typed.
      resolve(choice?.name ?? box.value);
      box.hide();
    });
    box.onDidHide(() => {
      resolve(undefined);
      box.dispose();
    });
    box.show();
  });
}
