/** A fresh editor: nothing is set, the folder is not trusted yet, and commands are given by their chords. */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { proposes, wakes } from "./model.ts";
import { makePrices, PRICE, textOf } from "./scene.ts";
import { stage } from "./stage.ts";

const on = stage(makePrices, {
  theme: "light",
  width: 1400,
  height: 860,
  trust: "ask",
  preferences: "default",
});

const PRICE_PATH = "price.py::price";
const runs = () => on.editor.page.locator('[id="workbench.view.extension.starling"] .monaco-list-row[aria-level="1"]');
const toReview = (number: number) => on.editor.page.locator(`[aria-label="To review, ${number}"]`);
on.step("the folder is trusted, and the server starts", async () => {
  await on.editor.status("Starling: restricted").click();
  await on.editor.page
    .locator(".workspace-trust-buttons-row .monaco-button", { hasText: /^Trust$/ })
    .first()
    .click();
  await on.editor.page.locator('.statusbar-item [aria-label^="Starling. Ready"]').waitFor();
  await on.editor.openFile("tax.py");
});

on.step("a proposal that is not on the screen is shown by the first accept, and accepted by the second", async () => {
  on.scene.model.knows("Double the base.", {
    scout: [wakes(PRICE_PATH)],
    [PRICE_PATH]: [proposes("Twice the base.", "base = 100", "base = 200")],
  });
  await on.editor.chord("t");
  await on.editor.task("Double the base.");
  await toReview(1).waitFor();
  await on.editor.openFile("tax.py");
  await on.editor.chord("a");
  await on.editor.proposed("base = 200").waitFor();
  await on.editor.row(/#\d price/, "waits for you").waitFor();
  assert.equal(textOf(on.scene, "price.py"), PRICE, "nothing is changed before it was seen");
  await on.editor.picture("default shown");
  await on.editor.chord("a");
  await on.onDisk("price.py", "base = 200");
  await on.editor.row(/#\d price/, "applied").waitFor();
});

on.step("forgotten runs do not come back with the next one, and Stop stops that", async () => {
  await on.editor.row("Double the base.", "settled").waitFor();
  await on.editor.command("Starling: Forget Ended Runs");
  await runs().waitFor({ state: "detached" });
  on.scene.model.knows("Halve the base.", { scout: [wakes(PRICE_PATH)] });
  on.scene.model.hold(PRICE_PATH);
  await on.editor.chord("t");
  await on.editor.task("Halve the base.");
  await on.scene.model.asked(PRICE_PATH);
  await on.editor.row("Halve the base.", "1 agent at work").waitFor();
  await on.editor.page.waitForTimeout(1000);
  assert.equal(await runs().count(), 1);
  await on.editor.chord("x");
  await on.editor.row("You stopped the run").waitFor();
  await on.editor.status(/stopped/).waitFor();
  on.scene.model.letGo(PRICE_PATH);
});

on.step("what is typed right after Change… goes into its box, not into the source", async () => {
  await on.editor.openFile("price.py");
  await on.editor.goTo(6);
  await on.editor.chord("c");
  // As fast as a person types: the first letter does not come at once.
  await on.editor.page.waitForTimeout(300);
  await on.editor.page.keyboard.type("Thirty-seven letters of a task, typed", { delay: 80 });
  const box = on.editor.page.locator(".quick-input-widget", { hasText: "Starling: Change price" });
  await box.waitFor();
  assert.equal(await box.locator("input").first().inputValue(), "Thirty-seven letters of a task, typed");
  assert.ok(!textOf(on.scene, "price.py").includes("letters"));
  await on.editor.page.keyboard.press("Escape");
  await box.waitFor({ state: "hidden" });
});

on.step("a task of several lines is written with completion, and earlier tasks come back", async () => {
  await on.editor.chord("t");
  const panel = await on.editor.view("#question");
  await panel.locator('#mode-task[aria-pressed="true"]').waitFor();
  const text = panel.locator("#question");
  await text.pressSequentially("Raise it in @pri", { delay: 30 });
  await panel.locator('#mentions [aria-selected="true"]', { hasText: "@price.py" }).waitFor();
  await on.editor.picture("default mention");
  await text.press("Enter");
  await text.press("Shift+Enter");
  await text.pressSequentially("as #lab", { delay: 30 });
  await panel.locator("#mentions li", { hasText: "#label" }).first().waitFor();
  await on.editor.picture("default symbol mention");
  await text.press("Tab");
  assert.equal(await text.inputValue(), "Raise it in @price.py \nas #label ");
  await text.press("Home");
  await text.press("ArrowUp");
  await text.press("ArrowUp");
  assert.equal(await text.inputValue(), "Halve the base.");
  await text.press("ArrowUp");
  assert.equal(await text.inputValue(), "Double the base.");
  await text.press("ArrowDown");
  await text.press("ArrowDown");
  assert.equal(await text.inputValue(), "Raise it in @price.py \nas #label ");
  await text.fill("");
});

on.step("the models are listed, and the present one is marked", async () => {
  await on.editor.command("Starling: Choose Model…");
  const box = on.editor.page.locator(".quick-input-widget", { hasText: "Starling: Choose a Model" });
  await box.locator(".monaco-list-row", { hasText: "openai:scripted" }).first().waitFor();
  await box.locator(".monaco-list-row", { hasText: "local" }).first().waitFor();
  await on.editor.picture("default models");
  await on.editor.page.keyboard.press("Escape");
  await box.waitFor({ state: "hidden" });
});

on.step("a setting that is changed in mid-run waits; restarting anyway leaves a run to run again", async () => {
  on.scene.model.knows("Raise the extra.", { scout: [wakes(PRICE_PATH), wakes(PRICE_PATH)] });
  on.scene.model.hold(PRICE_PATH);
  await on.editor.chord("t");
  await on.editor.task("Raise the extra.");
  await on.scene.model.asked(PRICE_PATH);
  for (const place of ["User", "Machine"]) {
    const path = join(on.scene.folder, "data", place, "settings.json");
    const settings = JSON.parse(readFileSync(path, "utf8"));
    writeFileSync(path, JSON.stringify({ ...settings, "starling.config": { "network.attempts": 2 } }));
  }
  const toast = on.editor.page.locator(".notification-toast", { hasText: "holds when the run has ended" });
  await toast.waitFor();
  await on.editor.row("Raise the extra.", "1 agent at work").waitFor();
  await on.editor.picture("default setting waits");
  await toast.locator(".monaco-button", { hasText: "Restart Now" }).click();
  await on.editor.row("Interrupted: the server was started anew").waitFor();
  await on.editor.row("Raise the extra.", /interrupted · [1-9]/).waitFor();
  await on.editor.picture("default interrupted");
  on.scene.model.letGo(PRICE_PATH);
  on.scene.model.knows("Raise the extra.", {
    scout: [wakes(PRICE_PATH)],
    [PRICE_PATH]: [proposes("25 now.", "extra = 19", "extra = 25")],
  });
  await on.editor.rowAction(/Raise the extra\..*interrupted/, "Run Again");
  await toReview(1).waitFor();
  await on.editor.row("Raise the extra.", "1 to review").waitFor();
});
