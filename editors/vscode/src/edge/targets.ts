/** What a command is about: a row of the tree, a lens, a diff, or what the user picks. */

import * as vscode from "vscode";
import type { Row, Target } from "../model/outline.ts";
import type { Story } from "../model/story.ts";
import { proposalWord, statusLine } from "../model/words.ts";
import type { Review } from "./review.ts";
import type { Runs } from "./runs.ts";

export class Targets {
  readonly #runs: Runs;
  readonly #review: Review;

  constructor(runs: Runs, review: Review) {
    this.#runs = runs;
    this.#review = review;
  }

  /** The argument of a command, from wherever it came. */
  given(argument: unknown): Target | undefined {
    if (argument instanceof vscode.Uri) {
      return this.#review.of(argument);
    }
    if (typeof argument !== "object" || argument === null) {
      return undefined;
    }
    const target = "target" in argument ? (argument as Row).target : (argument as Target);
    return typeof target.run === "string" ? target : undefined;
  }

  /** A proposal or an intent that waits: the given one, that of the open diff, the only one, or a chosen one. */
  async waiting(argument: unknown): Promise<Target | undefined> {
    return this.#onScreen(argument) ?? this.#pick(this.#undecided(), "Nothing waits for review.", "Which one?");
  }

  /**
   * What accepting is about. Nothing is accepted that the user has not seen: without an argument and
   * without an open diff, `shown` is false for a proposal, whose diff is to be opened instead. An
   * intent is shown by the list that it is picked from, even if it is the only one.
   */
  async toAccept(argument: unknown): Promise<{ target: Target; shown: boolean } | undefined> {
    const target = this.#onScreen(argument);
    if (target) {
      return { target, shown: true };
    }
    const choices = this.#undecided();
    const [only, ...more] = choices;
    if (only && more.length === 0 && only.target.proposal !== undefined) {
      return { target: only.target, shown: false };
    }
    const chosen =
      choices.length === 0
        ? await this.#pick(choices, "Nothing waits for review.", "")
        : (await vscode.window.showQuickPick(choices, { title: "Starling: Accept", placeHolder: "Which one?" }))
            ?.target;
    return chosen && { target: chosen, shown: chosen.proposal === undefined };
  }

  #onScreen(argument: unknown): Target | undefined {
    const known: Target | undefined = this.given(argument) ?? this.#review.active();
    return known && (known.proposal !== undefined || known.symbol !== undefined) ? known : undefined;
  }

  #undecided(): Choice[] {
    return this.#runs.all.flatMap((story) => [
      ...story.waiting.map((proposal) => ({
        label: `#${proposal.number} ${proposal.symbol}`,
        description: proposalWord(proposal.state),
        detail: proposal.reason,
        target: { run: story.id, proposal: proposal.number },
      })),
      ...[...story.intents.values()].map(({ symbol, intent }) => ({
        label: symbol,
        description: "means to",
        detail: intent,
        target: { run: story.id, symbol, intent },
      })),
    ]);
  }

  /** A run that goes. */
  async going(argument: unknown): Promise<Target | undefined> {
    return this.#run(argument, this.#runs.all.filter((story) => story.running).map(choice), "No run is going.");
  }

  /** A run that has ended. */
  async ended(argument: unknown): Promise<Target | undefined> {
    return this.#run(argument, this.#runs.all.filter((story) => !story.running).map(choice), "No run has ended.");
  }

  /** A run that changed something. */
  async changed(argument: unknown): Promise<Target | undefined> {
    const applied = this.#runs.all.filter((story) =>
      [...story.proposals.values()].some((proposal) => proposal.state === "applied"),
    );
    return this.#run(argument, applied.map(choice), "No run has changed anything that is not undone.");
  }

  async #run(argument: unknown, choices: Choice[], none: string): Promise<Target | undefined> {
    return this.given(argument) ?? this.#pick(choices, none, "Which run?");
  }

  async #pick(choices: Choice[], none: string, title: string): Promise<Target | undefined> {
    if (choices.length === 0) {
      void vscode.window.showInformationMessage(none);
      return undefined;
    }
    const [only, ...more] = choices;
    const chosen = more.length === 0 ? only : await vscode.window.showQuickPick(choices, { title });
    return chosen?.target;
  }
}

interface Choice extends vscode.QuickPickItem {
  target: Target;
}

function choice(story: Story): Choice {
  return { label: story.task, description: statusLine(story), target: { run: story.id } };
}
