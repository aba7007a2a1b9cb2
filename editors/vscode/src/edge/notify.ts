/** Tells the user, once, that something waits or that a run is over. */

import * as vscode from "vscode";
import type { Story } from "../model/story.ts";
import { shortName } from "../model/symbol.ts";
import { count, isGood, stopSentence } from "../model/words.ts";
import type { Review } from "./review.ts";
import type { Runs } from "./runs.ts";
import { setting } from "./settings.ts";
import type { Tree } from "./tree.ts";

/** What is decided or seen within so long needs no words. */
const PAUSE_MS = 600;

export class Notifier implements vscode.Disposable {
  readonly #review: Review;
  readonly #tree: Tree;
  readonly #listening: vscode.Disposable;
  #asking = false;

  constructor(runs: Runs, review: Review, tree: Tree) {
    this.#review = review;
    this.#tree = tree;
    this.#listening = runs.onEvent(({ story, params }) => {
      if (params.event.event === "review_asked") {
        void this.#waits(story, params.event.proposal);
      }
      if (params.event.event === "run_finished") {
        void this.#ended(story);
      }
    });
  }

  dispose(): void {
    this.#listening.dispose();
  }

  /** One question at a time: what waits besides is in the tree. */
  async #waits(story: Story, number: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    const proposal = story.proposals.get(number);
    const seen = this.#tree.visible || this.#review.active() !== undefined;
    // Of what an earlier server left, the server tells by itself.
    const idle = proposal?.state !== "waiting" || story.interrupted;
    if (!proposal || idle || seen || this.#asking || !setting("review.notify", true)) {
      return;
    }
    this.#asking = true;
    const text = `Proposal #${number} for ${shortName(proposal.symbol)} waits for you.`;
    const answer = await vscode.window.showInformationMessage(text, "Review");
    this.#asking = false;
    if (answer === "Review") {
      await vscode.commands.executeCommand("starling.client.next");
    }
  }

  async #ended(story: Story): Promise<void> {
    const end = story.end;
    if (!end || end.reason.reason === "cancelled") {
      return;
    }
    const applied = [...story.proposals.values()].filter((proposal) => proposal.state === "applied").length;
    const said = end.ending ? `${end.ending.headline}.` : stopSentence(end.reason);
    const text = `Starling: ${said}${applied > 0 ? ` ${count(applied, "change")} made.` : ""}`;
    const show = isGood(end) ? vscode.window.showInformationMessage : vscode.window.showWarningMessage;
    const actions = applied > 0 ? ["Undo All"] : [];
    const answer = await show(text, ...actions);
    if (answer === "Undo All") {
      await vscode.commands.executeCommand("starling.client.undo", { run: story.id });
    }
  }
}
