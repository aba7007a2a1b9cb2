/** The view of the runs as a tree. */

import * as vscode from "vscode";
import { agentRow, outline, type Row } from "../model/outline.ts";
import type { Story } from "../model/story.ts";
import type { Runs } from "./runs.ts";

const CLOCK_MS = 1000;
/** The least time between two drawings: a click meanwhile has lost its row. */
const DRAW_MS = 300;

export class Tree implements vscode.TreeDataProvider<Row>, vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<Row | void>();
  /** The rows that the editor holds, by their ids. */
  readonly #rows = new Map<string, Row>();
  /** What was drawn last: while rows are drawn anew the editor loses what a click was about. */
  #drawn = "";
  readonly #runs: Runs;
  readonly #view: vscode.TreeView<Row>;
  readonly #listening: vscode.Disposable;
  readonly #clock: NodeJS.Timeout;
  /** Until the next drawing. */
  #pause: NodeJS.Timeout | null = null;
  #isLate = false;

  constructor(runs: Runs) {
    this.#runs = runs;
    this.#view = vscode.window.createTreeView("starling.runs", { treeDataProvider: this, showCollapseAll: true });
    this.#listening = runs.onChange(() => this.#refresh());
    // Rows of agents at work say for how many seconds.
    this.#clock = setInterval(() => {
      this.#tick();
    }, CLOCK_MS);
  }

  get onDidChangeTreeData(): vscode.Event<Row | void> {
    return this.#changed.event;
  }

  get visible(): boolean {
    return this.#view.visible;
  }

  getChildren(row?: Row): Row[] {
    const rows = row ? row.children : this.#all();
    rows.forEach((one) => this.#rows.set(one.id, one));
    return rows;
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
    clearInterval(this.#clock);
    clearTimeout(this.#pause ?? undefined);
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
    if (this.#pause) {
      this.#isLate = true;
      return;
    }
    this.#pause = setTimeout(() => {
      this.#pause = null;
      if (this.#isLate) {
        this.#isLate = false;
        this.#refresh();
      }
    }, DRAW_MS);
    const drawn = JSON.stringify(this.#all());
    if (drawn !== this.#drawn) {
      this.#drawn = drawn;
      this.#rows.clear();
      this.#changed.fire();
    }
  }

  /** Draws the rows of agents at work, and only those. */
  #tick(): void {
    for (const story of this.#view.visible ? this.#runs.all : []) {
      for (const fresh of story.working.map((agent) => agentRow(story, agent))) {
        const known = this.#rows.get(fresh.id);
        if (known && known.description !== fresh.description) {
          known.description = fresh.description;
          this.#changed.fire(known);
        }
      }
    }
  }

  #all(): Row[] {
    return this.#runs.all.map((story) => this.#run(story));
  }
}
