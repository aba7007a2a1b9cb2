/** The same by lenses and actions, in a light and narrow window; a restart in the middle, a stop, and questions. */

import assert from "node:assert/strict";
import { makeParcels } from "./scene.ts";
import { stage } from "./stage.ts";

// The program that came with the extension, as for one who has set nothing.
const BUNDLED = { "starling.path": "" };

const on = stage(makeParcels, { theme: "light", width: 700, height: 820, settings: BUNDLED });

const toReview = (number: number) => on.editor.page.locator(`[aria-label="To review, ${number}"]`);
const lens = (text: string) => on.editor.offer(text);

on.step("an action on a symbol begins there", async () => {
  await on.editor.openFile("parcels/quote.py");
  await on.editor.page.locator('.statusbar-item [aria-label^="Starling. Ready"]').waitFor();
  await on.editor.goTo(17);
  await on.editor.page.keyboard.press("Control+.");
  await on.editor.page.locator(".action-widget .monaco-list-row", { hasText: "Starling: change" }).click();
  await on.editor.answer("Starling: Change quote", on.scene.task);
  await on.editor.row("means to:").waitFor();
});

on.step("a working agent has a lens; the accepted intent becomes a proposal with lenses", async () => {
  await on.editor.rowAction("means to:", "Accept");
  await toReview(2).waitFor();
  await on.editor.command("View: Close Primary Side Bar");
  await lens("Accept").waitFor();
  await lens("Why").waitFor();
  await on.editor.picture("light lenses");
});

on.step("the lens tells why", async () => {
  await lens("Why").click();
  await on.editor.page.locator(".tab.active", { hasText: "Why #" }).waitFor();
  const told = await on.editor.view(".markdown-body");
  await told.locator("p", { hasText: "percentage is added to the rate first" }).waitFor();
  await on.editor.picture("light why");
  await on.editor.command("View: Close Editor");
});

on.step("typing in the lines of a proposal is said to be a conflict; taken back, it is none", async () => {
  await on.editor.openFile("parcels/quote.py");
  await on.editor.goTo(17);
  await on.editor.page.keyboard.press("End");
  await on.editor.page.keyboard.type("  # mine");
  await lens("Hand back").waitFor();
  await on.editor.command("Starling: Review Next Proposal");
  await on.editor.proposed("season(day)").waitFor();
  await on.editor.command("Starling: Review Next Proposal");
  await on.editor.page.locator(".notification-toast", { hasText: "conflicts with what you typed" }).waitFor();
  // Your text is on the left, the proposed one on the right.
  await on.editor.page.locator(".tab.active", { hasText: "in conflict with yours" }).waitFor();
  await on.editor.proposed("percent").waitFor();
  await on.editor.picture("light conflict");
  await on.editor.openFile("parcels/quote.py");
  await on.editor.page.locator(".view-lines", { hasText: "# mine" }).first().waitFor();
  while ((await on.editor.page.locator(".tab.active.dirty").count()) > 0) {
    await on.editor.page.keyboard.press("Control+Z");
  }
  await lens("Accept").waitFor();
});

on.step("what waits outlives the server", async () => {
  await on.editor.command("Starling: Restart Server");
  await on.editor.page.locator(".monaco-dialog-box .monaco-button", { hasText: "Restart Now" }).click();
  await on.editor.command("Starling: Focus on Runs View");
  await toReview(2).waitFor();
  await on.editor.status(/2 to review/).waitFor();
  await on.editor.picture("light restored");
  await on.editor.clickRow(/#\d quote/, "waits for you");
  await on.editor.proposed("season(on)").waitFor();
  await on.editor.picture("light diff");
  await on.editor.titleAction("Accept");
  await on.onDisk("parcels/quote.py", "def quote(parcel, *, on):");
});

on.step("a run is stopped, and what was accepted stays", async () => {
  await on.editor.openFile("parcels/quote.py");
  await on.editor.goTo(20);
  await on.editor.command("Starling: Change…");
  await on.editor.answer("Starling: Change quote", on.scene.task);
  await on.editor.row("means to:").waitFor();
  await on.editor.command("Starling: Stop Run");
  await on.editor.row("You stopped the run").waitFor();
  await on.editor.row("Interrupted: the server was started anew").waitFor();
  await on.editor.status(/stopped/).waitFor();
  await on.onDisk("parcels/quote.py", "def quote(parcel, *, on):");
});

on.step("the picture works in a narrow window", async () => {
  await on.editor.command("Starling: Show Picture of the Run");
  const picture = await on.editor.view("#field .node");
  await picture.locator(".node", { hasText: "quote" }).first().waitFor();
  await on.editor.picture("light picture");
});

on.step("a question is answered with citations that are links", async () => {
  await on.editor.command("Starling: Ask about the Code…");
  const ask = await on.editor.view("#question");
  await ask.locator("#question").fill("How does percent round?");
  await on.editor.page.keyboard.press("Enter");
  await ask.locator(".answer.answered", { hasText: "rounds half up" }).waitFor();
  await on.editor.picture("light answer");
  await ask.locator("a", { hasText: "parcels/rates.py:17" }).click();
  await on.editor.page.locator(".tab.active", { hasText: "rates.py" }).waitFor();
  await on.editor.status("Ln 17").waitFor();
});

on.step("a question becomes a task, and its answer is there after the window was loaded anew", async () => {
  const ask = await on.editor.view("#question");
  await ask.locator("button", { hasText: "Make it a task" }).click();
  await ask.locator('#mode-task[aria-pressed="true"]').waitFor();
  assert.equal(await ask.locator("#question").inputValue(), "parcels/quote.py::quote: How does percent round?");
  const loaded = on.editor.page.waitForEvent("load");
  await on.editor.command("Developer: Reload Window");
  await loaded;
  await on.editor.page.locator(".monaco-workbench").waitFor();
  await on.editor.command("Starling: Ask about the Code…");
  const again = await on.editor.view("#question");
  await again.locator(".answer.answered", { hasText: "rounds half up" }).waitFor();
});
