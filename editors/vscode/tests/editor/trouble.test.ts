/** A workspace that is not trusted, and a program that is not there: nothing runs, and what to do is said. */

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { makeParcels } from "./scene.ts";
import { stage } from "./stage.ts";

const on = stage(makeParcels, {
  theme: "light",
  width: 1100,
  height: 700,
  trust: "ask",
  settings: { "starling.path": "/nowhere/starling" },
});

on.step("in an untrusted workspace nothing is started", async () => {
  await on.editor.status("Starling: restricted").waitFor();
  await on.editor.command("Starling: Focus on Runs View");
  await on.editor.page.locator(".welcome-view-content", { hasText: "not trusted" }).waitFor();
  await on.editor.picture("light untrusted");
  assert.deepEqual(readdirSync(on.scene.cache), []);
});

on.step("once it is trusted the missing program is named, with what to do", async () => {
  await on.editor.status("Starling: restricted").click();
  await on.editor.page
    .locator(".workspace-trust-buttons-row .monaco-button", { hasText: /^Trust$/ })
    .first()
    .click();
  await on.editor.status("Starling: not running").waitFor();
  await on.editor.page.locator(".notification-toast", { hasText: "starling.path says /nowhere/starling" }).waitFor();
  await on.editor.page.locator(".welcome-view-content", { hasText: "was not found" }).waitFor();
  await on.editor.picture("light missing");
});
