/** One buffer, several hands: typing while an agent works, undo, stop, formatters, other programs, other windows. */

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { proposes } from "./model.ts";
import { makePrices, PRICE, TAX, textOf } from "./scene.ts";
import { stage } from "./stage.ts";

const on = stage(makePrices, {
  theme: "contrast",
  width: 1600,
  height: 900,
  settings: { "[python]": { "editor.formatOnSave": true } },
});

const PRICE_PATH = "price.py::price";
const TAX_PATH = "tax.py::tax";
const toReview = (number: number) => on.editor.page.locator(`[aria-label="To review, ${number}"]`);
const lens = (text: string) => on.editor.offer(text);
const shown = (text: string) => on.editor.page.locator(".view-lines", { hasText: text }).first();

const gone = () => on.editor.page.locator(".notification-toast", { hasText: "tax.py is gone" });

/** Begins a run at the symbol on a line of a file. */
async function change(file: string, line: number, task: string): Promise<void> {
  await on.editor.openFile(file);
  await on.editor.goTo(line);
  await on.editor.command("Starling: Change…");
  await on.editor.answer("Starling: Change ", task);
}

on.step("an agent is at work, and its symbol says so", async () => {
  await on.editor.openFile("price.py");
  await on.editor.page.locator('.statusbar-item [aria-label^="Starling. Ready"]').waitFor();
  on.scene.model.knows("Double the base.", { [PRICE_PATH]: [proposes("Twice the base.", "base = 100", "base = 200")] });
  on.scene.model.hold(PRICE_PATH);
  await change("price.py", 6, "Double the base.");
  await on.scene.model.asked(PRICE_PATH);
  await lens("Stop").waitFor();
  await on.editor.row(/^price/, "price.py").waitFor();
});

on.step("what is typed in the symbol meanwhile is kept by its proposal", async () => {
  await on.editor.openFile("price.py");
  await on.editor.goTo(7);
  await on.editor.page.keyboard.press("End");
  await on.editor.page.keyboard.type("  # per cent 🙂");
  await on.editor.page.locator(".tab.active.dirty").waitFor();
  await on.editor.remark("An agent is at work on price");
  await on.editor.picture("contrast at work");
  on.scene.model.letGo(PRICE_PATH);
  await toReview(1).waitFor();
  await lens("Accept").waitFor();
  await on.editor.remark("An agent is at work on price", "gone");
  await on.editor.clickRow(/#\d price/, "waits for you");
  await on.editor.proposed("base = 200").waitFor();
  await on.editor.proposed("# per cent 🙂").waitFor();
  await on.editor.titleAction("Accept");
  await on.editor.row(/#\d price/, "applied").waitFor();
  assert.equal(textOf(on.scene, "price.py"), PRICE, "it held unsaved typing: saving it is the user's to do");
  await on.editor.openFile("price.py");
  await on.editor.page.keyboard.press("Control+S");
  await on.onDisk("price.py", "base = 200");
  await on.onDisk("price.py", "extra = 19  # per cent 🙂");
});

on.step("one change is undone, and the typing stays", async () => {
  await on.editor.rowAction(/#\d price/, "Undo");
  await on.editor.row(/#\d price/, "undone").waitFor();
  await shown("base = 100").waitFor();
  await on.onDisk("price.py", "base = 100");
  await on.onDisk("price.py", "extra = 19  # per cent 🙂");
});

on.step("an edit is one step for the editor's own undo, and the cursor stays on its line", async () => {
  on.scene.model.knows("Triple the base.", {
    [PRICE_PATH]: [proposes("Thrice the base.", "base = 100", "base = 300  # thrice\n    # of what it was")],
  });
  await change("price.py", 6, "Triple the base.");
  await lens("Accept").waitFor();
  await on.editor.openFile("price.py");
  await on.editor.goTo(13);
  await lens("Accept").click();
  await on.editor.status("Ln 14,").waitFor();
  await on.onDisk("price.py", "base = 300  # thrice");
  await on.editor.row(/#\d price/, "applied").waitFor();
  await on.editor.openFile("price.py");
  await on.editor.page.keyboard.press("Control+Z");
  await shown("base = 100").waitFor();
  await on.editor.status("Ln 13,").waitFor();
  // The tree follows the editor's own undo, and its redo.
  await on.editor.row(/#\d price/, "applied").waitFor({ state: "detached" });
  await on.editor.openFile("price.py");
  await on.editor.page.keyboard.press("Control+Y");
  await shown("base = 300").waitFor();
  await on.editor.row(/#\d price/, "applied").waitFor();
  await on.editor.openFile("price.py");
  await on.editor.page.keyboard.press("Control+S");
  await on.editor.page.locator(".tab.active:not(.dirty)").waitFor();
});

on.step("typing in the very lines goes back to the agent with both texts", async () => {
  on.scene.model.knows("Raise the extra.", {
    [PRICE_PATH]: [
      proposes("It is 25 now.", "extra = 19", "extra = 25"),
      proposes("25, and what you typed.", "19  # per cent 🙂 mine", "25  # per cent 🙂 mine"),
    ],
  });
  await change("price.py", 6, "Raise the extra.");
  await lens("Accept").waitFor();
  await on.editor.openFile("price.py");
  await on.editor.goTo(8);
  await on.editor.page.keyboard.press("End");
  await on.editor.page.keyboard.type(" mine");
  await lens("Hand back").waitFor();
  await shown("extra = 19  # per cent 🙂 mine").waitFor();
  await lens("Hand back").click();
  await on.editor.row(/#\d price/, "conflict").waitFor();
  await lens("Accept").click();
  await shown("extra = 25  # per cent 🙂 mine").waitFor();
  await on.editor.openFile("price.py");
  await on.editor.page.keyboard.press("Control+S");
  await on.onDisk("price.py", "extra = 25  # per cent 🙂 mine");
});

on.step("a formatter runs over what was accepted: what it rewrote is taken back by the editor's own undo", async () => {
  on.scene.model.knows("In capitals.", { "price.py::label": [proposes("In capitals.", '"price"', "'PRICE'")] });
  await change("price.py", 14, "In capitals.");
  await toReview(1).waitFor();
  // The first one shows it.
  await on.editor.command("Starling: Accept");
  await on.editor.proposed("'PRICE'").waitFor();
  await on.editor.command("Starling: Accept");
  await shown("PRICE").waitFor();
  // The editor's own saving after a delay may have come first: that one formats nothing.
  await on.editor.openFile("price.py");
  await on.editor.page.keyboard.press("Control+S");
  await on.onDisk("price.py", 'return "PRICE"');
  await on.editor.rowAction(/#\d label/, "Undo");
  await on.editor.page.locator(".notification-toast", { hasText: "Nothing was undone" }).waitFor();
  await on.editor.openFile("price.py");
  await on.editor.page.keyboard.press("Control+Z");
  await shown("return 'PRICE'").waitFor();
  await on.editor.page.keyboard.press("Control+Z");
  await shown('return "price"').waitFor();
  await on.editor.page.keyboard.press("Control+S");
  await on.onDisk("price.py", 'return "price"');
  await on.onDisk("price.py", "extra = 25  # per cent 🙂 mine");
});

on.step("a run is stopped while its agent works, and nothing is asked after it", async () => {
  on.scene.model.hold(PRICE_PATH);
  on.scene.model.knows("Halve the base.", { [PRICE_PATH]: [proposes("Half the base.", "base = 300", "base = 150")] });
  await change("price.py", 6, "Halve the base.");
  await on.scene.model.asked(PRICE_PATH);
  await lens("Stop").click();
  await on.scene.model.dropped(PRICE_PATH);
  await on.editor.row("You stopped the run").waitFor();
  on.scene.model.letGo(PRICE_PATH);
});

/** Asks for the review until it is said that the file is gone: a notice may be covered or close by itself. */
async function saidToBeGone(): Promise<void> {
  for (let tries = 0; tries < 8; tries++) {
    await on.editor.command("Starling: Review Next Proposal");
    const seen = gone().waitFor({ timeout: 20_000 });
    if (await seen.then(() => true).catch(() => false)) {
      return;
    }
  }
  await gone().waitFor();
}

on.step("a file that is deleted or renamed under a proposal is not brought back", async () => {
  on.scene.model.knows("Double the tax.", { [TAX_PATH]: [proposes("Twice the tax.", "return 10", "return 20")] });
  await change("tax.py", 6, "Double the tax.");
  await toReview(1).waitFor();
  await on.editor.openFile("tax.py");
  await on.editor.command("View: Close Editor");
  const [file, renamed] = ["tax.py", "duty.py"].map((name) => join(on.scene.project, name)) as [string, string];
  renameSync(file, renamed);
  await saidToBeGone();
  await on.editor.picture("contrast gone");
  assert.ok(!existsSync(file));
  assert.equal(readFileSync(renamed, "utf8"), TAX);
  await on.editor.command("Notifications: Clear All Notifications");
  await gone().waitFor({ state: "hidden" });
  rmSync(renamed);
  await saidToBeGone();
  assert.ok(!existsSync(file));
  on.scene.git("checkout", "--quiet", "--", "tax.py");
  await on.editor.command("Starling: Review Next Proposal");
  await on.editor.proposed("return 20").waitFor();
  await on.editor.titleAction("Accept");
  await on.onDisk("tax.py", "return 20");
});

on.step("another branch is checked out under a proposal: it moves along", async () => {
  on.scene.git("commit", "--quiet", "--all", "--message", "What was accepted");
  on.scene.git("checkout", "--quiet", "-b", "other");
  const file = join(on.scene.project, "price.py");
  writeFileSync(file, `# Another branch.\n${readFileSync(file, "utf8").replace('return "price"', 'return "PRICES"')}`);
  on.scene.git("commit", "--quiet", "--all", "--message", "Elsewhere");
  on.scene.git("checkout", "--quiet", "main");
  await on.editor.openFile("price.py");
  await shown('return "price"').waitFor();
  on.scene.model.knows("Quadruple the base.", {
    [PRICE_PATH]: [proposes("Four times the base.", "base = 300", "base = 400")],
  });
  await change("price.py", 6, "Quadruple the base.");
  await lens("Accept").waitFor();
  on.scene.git("checkout", "--quiet", "other");
  await shown('return "PRICES"').waitFor();
  await lens("Accept").click();
  await on.onDisk("price.py", "base = 400");
  await on.onDisk("price.py", "# Another branch.");
  await on.onDisk("price.py", 'return "PRICES"');
});

on.step("of two windows on one folder each has its own runs, and none loses what is typed", async () => {
  const other = await on.editor.window();
  await other.openFile("price.py");
  await other.page.locator('.statusbar-item [aria-label^="Starling. Ready"]').waitFor();
  on.scene.model.knows("Once more.", { [TAX_PATH]: [proposes("Thirty.", "return 20", "return 30")] });
  await change("tax.py", 6, "Once more.");
  await lens("Accept").waitFor();
  await other.openFile("tax.py");
  await other.page.locator(".view-lines", { hasText: "return 20" }).first().waitFor();
  await lens("Accept").click();
  await on.onDisk("tax.py", "return 30");
  await other.page.locator(".view-lines", { hasText: "return 30" }).first().waitFor();
  await other.goTo(1);
  await other.page.keyboard.press("End");
  await other.page.keyboard.type("  # in two");
  on.scene.model.knows("And again.", { [TAX_PATH]: [proposes("Forty.", "return 30", "return 40")] });
  await change("tax.py", 6, "And again.");
  await lens("Accept").click();
  await on.onDisk("tax.py", "return 40");
  await other.page.locator(".view-lines", { hasText: "# in two" }).first().waitFor();
  await other.page.locator('.statusbar-item [aria-label^="Starling. Ready"]').waitFor();
  await other.page.close();
});

on.step("the server is killed while a proposal waits: another one offers it", async () => {
  on.scene.model.knows("Fifty.", { [TAX_PATH]: [proposes("It is fifty.", "return 40", "return 50")] });
  await change("tax.py", 6, "Fifty.");
  await toReview(1).waitFor();
  process.kill(serverOf(on.scene.cache), "SIGKILL");
  await on.editor.row("Interrupted: the server was started anew").waitFor();
  await toReview(1).waitFor();
  await on.editor.command("Starling: Accept");
  await on.editor.proposed("return 50").waitFor();
  await on.editor.command("Starling: Accept");
  await on.onDisk("tax.py", "return 50");
});

on.step("nothing was asked of a model that was not to be asked", () => {
  const asked = on.scene.model.requests.map(({ task }) => task);
  assert.equal(asked.filter((task) => task === "Halve the base.").length, 1, "nothing after the stop");
  assert.equal(asked.filter((task) => task === "").length, 0, "nothing that no step has asked for");
  return Promise.resolve();
});

/** The server of the scene, by the variable that names its cache. */
function serverOf(cache: string): number {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  const found = pids.find((pid) => {
    try {
      const names = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      return (
        names[1] === "lsp" && readFileSync(`/proc/${pid}/environ`, "utf8").includes(`STARLING_CACHE_DIR=${cache}\0`)
      );
    } catch {
      return false; // It has ended meanwhile.
    }
  });
  assert.ok(found, "the server runs");
  return Number(found);
}
