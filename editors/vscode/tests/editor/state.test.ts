/** What the views show is how things are: after the editor's own undo, after a restart, after a reload. */

import assert from "node:assert/strict";
import { proposes, wakes } from "./model.ts";
import { makePrices } from "./scene.ts";
import { stage } from "./stage.ts";

const on = stage(makePrices, { theme: "dark", width: 1400, height: 860, preferences: "default" });

const PRICE_PATH = "price.py::price";
const TAX_PATH = "tax.py::tax";
const toReview = (number: number) => on.editor.page.locator(`[aria-label="To review, ${number}"]`);

/** Everything that the status bar says of agents at work while something happens. */
async function counted(act: () => Promise<void>): Promise<string[]> {
  const said = new Set<string>();
  const clock = setInterval(() => {
    void on.editor
      .status(/Starling|at work|to review/)
      .allInnerTexts()
      .then((texts) => texts.forEach((text) => said.add(text)))
      .catch(() => undefined);
  }, 20);
  await act();
  clearInterval(clock);
  return [...said];
}

on.step("the editor's own undo of an accepted change is shown, and its redo", async () => {
  await on.editor.openFile("price.py");
  await on.editor.page.locator('.statusbar-item [aria-label^="Starling. Ready"]').waitFor();
  on.scene.model.knows("Double the base.", {
    scout: [wakes(PRICE_PATH)],
    [PRICE_PATH]: [proposes("Twice the base.", "base = 100", "base = 200")],
  });
  await on.editor.chord("t");
  await on.editor.task("Double the base.");
  await toReview(1).waitFor();
  await on.editor.chord("a");
  await on.editor.proposed("base = 200").waitFor();
  await on.editor.chord("a");
  await on.editor.row(/#1 price/, "applied").waitFor();
  await on.editor.row("Double the base.", "settled").waitFor();
  await on.editor.openFile("price.py");
  await on.editor.page.keyboard.press("Control+Z");
  await on.editor.page.locator(".view-lines", { hasText: "base = 100" }).first().waitFor();
  await on.editor.row(/#1 price/, "undone").waitFor();
  await on.editor.picture("state undone by the editor");
  await on.editor.page.keyboard.press("Control+Y");
  await on.editor.row(/#1 price/, "applied").waitFor();
});

on.step("a restored run has nobody at work, from the first moment on", async () => {
  on.scene.model.knows("Change both.", {
    scout: [wakes(PRICE_PATH, TAX_PATH)],
    [PRICE_PATH]: [proposes("A better extra.", "extra = 19", "extra = 25")],
    [TAX_PATH]: [proposes("A better tax.", "return 10", "return 12")],
  });
  await on.editor.chord("t");
  await on.editor.task("Change both.");
  await toReview(2).waitFor();
  const said = await counted(async () => {
    await on.editor.command("Starling: Restart Server");
    await on.editor.page.locator(".monaco-dialog-box .monaco-button", { hasText: "Restart Now" }).click();
    await on.editor.row("Interrupted: the server was started anew").waitFor();
    await toReview(2).waitFor();
  });
  // What ended before is history, and is there again.
  await on.editor.row("Double the base.", "settled").waitFor();
  assert.deepEqual(
    said.filter((text) => text.includes("at work")),
    [],
  );
});

on.step("a proposal of a restored run is rejected", async () => {
  await on.editor.rowAction(/#\d tax/, "Reject");
  await on.editor.page.locator(".quick-input-widget", { hasText: "Its agent is gone with the server" }).waitFor();
  await on.editor.answer("Starling: Reject", "Not now.");
  await on.editor.row(/#\d tax/, "rejected").waitFor();
  await toReview(1).waitFor();
  await on.editor.row(/#\d price/, "waits for you").waitFor();
});

on.step("steering a restored run says that its agents are gone", async () => {
  await on.editor.clickRow(/#\d price/, "waits for you");
  await on.editor.proposed("extra = 25").waitFor();
  await on.editor.titleAction("Steer");
  await on.editor.answer("Starling: Steer", "A smaller one.");
  await on.editor.page.locator(".notification-toast", { hasText: "ended with an earlier server" }).waitFor();
  await on.editor.row(/#\d price/, "waits for you").waitFor();
});

on.step("the picture shows the restored run after the window was loaded anew", async () => {
  await on.editor.command("Starling: Show Picture of the Run");
  const before = await on.editor.view("#field .node");
  await before.locator("#task", { hasText: "Change both." }).waitFor();
  await on.editor.picture("state before a reload");
  const loaded = on.editor.page.waitForEvent("load");
  await on.editor.command("Developer: Reload Window");
  await loaded;
  await on.editor.page.locator(".monaco-workbench").waitFor();
  await on.editor.page.locator(".tab", { hasText: "Starling: Run" }).first().click();
  const after = await on.editor.view("#field .node");
  await after.locator("#task", { hasText: "Change both." }).waitFor();
  await after.locator(".node", { hasText: "waits for you" }).first().waitFor();
  await after.locator("#status", { hasText: "Interrupted" }).waitFor();
  assert.equal(await after.locator(".node.working").count(), 0);
  await on.editor.row("Double the base.", "settled").waitFor();
  await on.editor.picture("state after a reload");
});

on.step("what an agent reads, and for how many seconds it thinks, is visible", async () => {
  on.scene.model.knows("Look first.", {
    scout: [wakes(PRICE_PATH)],
    [PRICE_PATH]: [{ tool: "read", arguments: { symbols: [TAX_PATH] } }, proposes("After a look.", "19", "20")],
  });
  on.scene.model.hold(PRICE_PATH);
  await on.editor.chord("t");
  await on.editor.task("Look first.");
  await on.scene.model.asked(PRICE_PATH);
  on.scene.model.letGo(PRICE_PATH);
  on.scene.model.hold(PRICE_PATH);
  await on.editor.row("price", /\d+ s · thinks; last reads tax\.py::tax/).waitFor();
  await on.editor.expand(/price.*thinks/);
  await on.editor.picture("state what an agent reads");
  on.scene.model.letGo(PRICE_PATH);
  await on.editor.row("Look first.", "to review").waitFor();
});

on.step("the diff says why, and how the tests went", async () => {
  await on.editor.clickRow(/#\d price/, "waits for you · price.py");
  await on.editor.proposed("extra = 2").waitFor();
  await on.editor.remark("tests unknown");
  await on.editor.picture("state reason in the diff");
});
