/** No line of the text moves when an agent begins, when its proposal comes, and when that goes. */

import assert from "node:assert/strict";
import { proposes } from "./model.ts";
import { makePrices, textOf } from "./scene.ts";
import { stage } from "./stage.ts";

const on = stage(makePrices, { theme: "dark", width: 1100, height: 800 });

const PRICE_PATH = "price.py::price";
const BELOW = "How it is written.";

let top = 0;

on.step("an agent begins", async () => {
  await on.editor.openFile("price.py");
  await on.editor.page.locator('.statusbar-item [aria-label^="Starling. Ready"]').waitFor();
  await on.editor.page.locator(".view-line", { hasText: BELOW }).first().waitFor();
  on.scene.model.knows("Double the base.", { [PRICE_PATH]: [proposes("Twice the base.", "base = 100", "base = 200")] });
  on.scene.model.hold(PRICE_PATH);
  await on.editor.goTo(6);
  top = await on.editor.topOf(BELOW);
  await on.editor.command("Starling: Change…");
  await on.editor.answer("Starling: Change ", "Double the base.");
  await on.scene.model.asked(PRICE_PATH);
  await on.editor.offer("Stop").waitFor();
  assert.equal(await on.editor.topOf(BELOW), top);
  await on.editor.picture("dark at work, nothing moved");
});

on.step("its proposal comes", async () => {
  on.scene.model.letGo(PRICE_PATH);
  await on.editor.offer("Accept").waitFor();
  assert.equal(await on.editor.topOf(BELOW), top);
  await on.editor.offer("Diff").click();
  await on.editor.proposed("base = 200").waitFor();
  await on.editor.command("View: Close Editor");
});

on.step("it is accepted under the mouse, and goes", async () => {
  await on.editor.openFile("price.py");
  await on.editor.offer("Accept").click();
  await on.onDisk("price.py", "base = 200");
  await on.editor.remark("Starling #", "gone");
  assert.equal(await on.editor.topOf(BELOW), top);
  assert.ok(textOf(on.scene, "price.py").includes("How it is written."));
});
