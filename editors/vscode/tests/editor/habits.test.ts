/** A fresh editor: nothing is set, the folder is not trusted yet, and commands are given by their chords. */

import assert from "node:assert/strict";
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
  await on.editor.answer("Starling: New Task", "Double the base.");
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
