/** The editor's test view: which tests checked which proposal, and how they went. Nothing is run from here. */

import { existsSync, readFileSync } from "node:fs";
import * as vscode from "vscode";
import { testPath } from "../model/outline.ts";
import type { TestCase, TestReport } from "../model/protocol.ts";
import type { Story } from "../model/story.ts";
import { type Folder, uriOf } from "./place.ts";
import type { Runs } from "./runs.ts";

export class TestsView implements vscode.Disposable {
  readonly #controller = vscode.tests.createTestController("starling.tests", "Starling: tests of proposals");
  readonly #listening: vscode.Disposable;

  constructor(runs: Runs) {
    this.#listening = runs.onEvent(({ story, params: { event } }) => {
      if (event.event === "tests_run") {
        this.#show(nameOf(story, event.phase, event.proposal), event.report, runs.folderOf(story.id));
      }
    });
  }

  dispose(): void {
    this.#listening.dispose();
    this.#controller.dispose();
  }

  #show(name: string, report: TestReport, folder: Folder): void {
    const cases = report.cases.map((one) => ({ one, item: this.#item(one, folder) }));
    const request = new vscode.TestRunRequest(cases.map(({ item }) => item));
    const run = this.#controller.createTestRun(request, name, false);
    run.appendOutput(`${name}\r\n$ ${report.command}\r\n${report.output.replace(/\r?\n/g, "\r\n")}\r\n`);
    for (const { one, item } of cases) {
      tell(run, one, item);
    }
    run.end();
  }

  #item(one: TestCase, folder: Folder): vscode.TestItem {
    let level = this.#controller.items;
    let item: vscode.TestItem | undefined;
    let file: vscode.Uri | undefined;
    const names: string[] = [];
    for (const part of testPath(one)) {
      names.push(part);
      file ??= fileOf(part, folder);
      const id = `${folder?.uri} ${names.join("::")}`;
      item = level.get(id);
      if (!item) {
        item = this.#controller.createTestItem(id, part, file);
        if (file && names.length > 1) {
          const line = lineOf(file, part);
          item.range = line === undefined ? undefined : new vscode.Range(line, 0, line, 0);
        }
        level.add(item);
      }
      level = item.children;
    }
    return item ?? this.#controller.createTestItem(one.id, one.id);
  }
}

function nameOf(story: Story, phase: string, number: number | null): string {
  const proposal = number === null ? undefined : story.proposals.get(number);
  if (proposal) {
    return `Proposal #${proposal.number}: ${proposal.symbol}`;
  }
  return phase === "before" ? "Before the run" : "After all changes";
}

function tell(run: vscode.TestRun, { status, message }: TestCase, item: vscode.TestItem): void {
  switch (status) {
    case "passed":
      return run.passed(item);
    case "failed":
      return run.failed(item, new vscode.TestMessage(message));
    case "error":
      return run.errored(item, new vscode.TestMessage(message));
    case "skipped":
      return run.skipped(item);
  }
}

/** The file of a test: pytest gives its path, unittest the name of its module. */
function fileOf(part: string, folder: Folder): vscode.Uri | undefined {
  const candidates = part.includes("/") || part.endsWith(".py") ? [part] : [`${part.replaceAll(".", "/")}.py`];
  const uris = candidates.map((path) => uriOf(path, folder));
  return uris.find((uri) => existsSync(uri.fsPath));
}

function lineOf(file: vscode.Uri, name: string): number | undefined {
  const plain = name.replace(/\[.*$/, "");
  const lines = readFileSync(file.fsPath, "utf8").split("\n");
  const line = lines.findIndex((text) =>
    new RegExp(`\\b(?:def|class)\\s+${plain.replace(/\W/g, "\\$&")}\\b`).test(text),
  );
  return line < 0 ? undefined : line;
}
