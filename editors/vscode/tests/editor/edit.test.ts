/** A proposal is edited before it is accepted, and accepted in part. */

import assert from "node:assert/strict";
import { proposes, wakes } from "./model.ts";
import { makePrices, PRICE, textOf } from "./scene.ts";
import { stage } from "./stage.ts";

const on = stage(makePrices, { theme: "light", width: 1280, height: 800 });

const TASK = "Tidy the price up.";

const tab = (title: RegExp) => on.editor.page.locator(".tab.active", { hasText: title });

on.step("a proposal is opened to be edited", async () => {
  on.scene.model.knows(TASK, {
    scout: [wakes("price.py::price")],
    "price.py::price": [proposes("Added in the other order.", "return base + extra", "return extra + base")],
  });
  await on.editor.openFile("price.py");
  await on.editor.page.locator('.statusbar-item [aria-label^="Starling. Ready"]').waitFor();
  await on.editor.command("Starling: New Task…");
  await on.editor.task(TASK);
  await on.editor.clickRow(/#\d price/, "waits for you");
  await tab(/^Proposal #1: price/).waitFor();
  await on.editor.titleAction("Edit Before Accepting");
  await tab(/^Edit #1: price/).waitFor();
  await on.editor.proposed("extra + base").waitFor();
});

on.step("what cannot be checked is not taken, and nothing is lost", async () => {
  await on.editor.proposed("extra + base").click();
  await on.editor.page.keyboard.press("Control+Home");
  await on.editor.page.keyboard.type("def (:\n");
  await on.editor.page.keyboard.press("Control+s");
  await on.editor.page
    .getByText(/syntax error in line 1/)
    .first()
    .waitFor();
  await on.editor.proposed("def (:").waitFor();
  assert.equal(textOf(on.scene, "price.py"), PRICE);
  // The editor closed the bracket by itself: that and each word are steps of its undo.
  for (let step = 0; step < 12; step++) {
    await on.editor.page.keyboard.press("Control+z");
  }
});

on.step("the saved version is checked, shown, and accepted", async () => {
  await on.editor.proposed("extra + base").click();
  await on.editor.page.keyboard.press("Control+Home");
  await on.editor.page.keyboard.type("# In cents.\n");
  await on.editor.picture("light edit");
  await on.editor.page.keyboard.press("Control+s");
  await tab(/^Proposal #1: price/).waitFor();
  await on.editor.proposed("# In cents.").waitFor();
  await on.editor.row(/#1 price/, "waits for you").waitFor();
  assert.equal(textOf(on.scene, "price.py"), PRICE, "what waits is not on disk");
  await on.editor.titleAction("Accept");
  await on.onDisk("price.py", "# In cents.");
  await on.onDisk("price.py", "return extra + base");
});
