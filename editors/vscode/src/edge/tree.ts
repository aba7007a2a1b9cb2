/** The view of the runs as a tree. */

import * as vscode from "vscode";
import { outline, type Row } from "../model/outline.ts";
import type { Story } from "../model/story.ts";
import type { Runs } from "./runs.ts";

export class Tree implements vscode.TreeDataProvider<Row>, vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<void>();
  readonly #runs: Runs;
  readonly #view: vscode.TreeView<Row>;
  readonly #listening: vscode.Disposable;

  constructor(runs: Runs) {
    this.#runs = runs;
    this.#view = vscode.window.createTreeView("starling.runs", { treeDataProvider: this, showCollapseAll: true });
    this.#listening = runs.onChange(() => this.#refresh());
  }

  get onDidChangeTreeData(): vscode.Event<void> {
    return this.#changed.event;
  }

  get visible(): boolean {
    return this.#view.visible;
  }

  getChildren(row?: Row): Row[] {
    return row ? row.children : this.#runs.all.map((story) => this.#run(story));
  }

  getTreeItem(row: Row): vscode.TreeItem {
    const states = {
      closed: vscode.TreeItemCollapsibleState.Collapsed,
      open: vscode.TreeItemCollapsibleState.Expanded,
      leaf: vscode.TreeItemCollapsibleState.None,
    };
    const item = new vscode.TreeItem(row.label, states[row.open]);
    item.id = row.id;
    item.description = row.description;
    item.tooltip = row.tooltip;
    item.contextValue = row.context;
    item.accessibilityInformation = { label: `${row.label}, ${row.description}` };
    if (row.icon) {
      item.iconPath = new vscode.ThemeIcon(row.icon, row.colour ? new vscode.ThemeColor(row.colour) : undefined);
    }
    if (row.target.shows === "diff") {
      item.command = { command: "starling.client.diff", title: "Show Diff", arguments: [row.target] };
    }
    if (row.target.shows === "symbol") {
      item.command = { command: "starling.client.open", title: "Open Symbol", arguments: [row.target] };
    }
    return item;
  }

  dispose(): void {
    this.#listening.dispose();
    this.#view.dispose();
    this.#changed.dispose();
  }

  /** Where a window has several folders, each run names its own. */
  #run(story: Story): Row {
    const run = outline(story);
    const several = (vscode.workspace.workspaceFolders ?? []).length > 1;
    const name = several ? this.#runs.folderOf(story.id)?.name : undefined;
    return name ? { ...run, description: `${name} · ${run.description}` } : run;
  }

  #refresh(): void {
    const waiting = this.#runs.waiting.length;
    this.#view.badge = waiting > 0 ? { value: waiting, tooltip: `${waiting} to review` } : undefined;
    this.#changed.fire();
  }
}
