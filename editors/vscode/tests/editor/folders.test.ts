/** Two folders in one window: each run belongs to one of them, and nothing crosses over. */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { proposes, wakes } from "./model.ts";
import { makePrices, type Prices, TAX } from "./scene.ts";
import { stage } from "./stage.ts";

async function makeFolders(): Promise<Prices & { open: string }> {
  const scene = await makePrices();
  const workspace = join(scene.folder, "two.code-workspace");
  writeFileSync(workspace, JSON.stringify({ folders: [{ path: "prices" }, { path: "other" }] }));
  return { ...scene, open: `workspace=${encodeURIComponent(workspace)}` };
}

// Lenses above the lines, for those who want them there.
const SETTINGS = { "starling.lenses": "above" };

const on = stage(makeFolders, { theme: "light contrast", width: 700, height: 820, settings: SETTINGS });

const TAX_PATH = "tax.py::tax";
const other = (path: string) => readFileSync(join(on.scene.other, path), "utf8");
const lens = (text: string) => on.editor.page.locator(".codelens-decoration a", { hasText: text }).first();
const inOther = () => on.editor.page.locator(".tab.active", { hasText: "tax.py" });

on.step("a task is given to the folder that is chosen", async () => {
  await on.editor.status("Starling").waitFor();
  await on.editor.page.locator('.statusbar-item [aria-label^="Starling. Ready"]').waitFor();
  on.scene.model.knows("Double the tax.", {
    scout: [wakes(TAX_PATH)],
    [TAX_PATH]: [proposes("Twice the tax.", "return 10", "return 20")],
  });
  await on.editor.command("Starling: New Task…");
  await on.editor.choose("In which folder?", "other");
  await on.editor.task("Double the tax.");
  await on.editor.row("Double the tax.", "other · 1 to review").waitFor();
  await on.editor.picture("light contrast folders");
});

on.step("its proposal is shown, and accepted, in that folder alone", async () => {
  await on.editor.clickRow(/#\d tax/, "waits for you");
  await on.editor.proposed("return 20").waitFor();
  await on.editor.picture("light contrast diff");
  await on.editor.titleAction("Accept");
  await on.onDisk("../other/tax.py", "return 20");
  assert.equal(readFileSync(join(on.scene.project, "tax.py"), "utf8"), TAX);
});

on.step("a symbol's run is in the folder of its file, and so are its lenses", async () => {
  on.scene.model.knows("Triple the tax.", { [TAX_PATH]: [proposes("Thrice the tax.", "return 20", "return 30")] });
  await on.editor.row(/#\d tax/, "applied").waitFor();
  await on.editor.clickRow(/^tax/, "done");
  await inOther().waitFor();
  await on.editor.command("View: Close Primary Side Bar");
  await on.editor.goTo(6);
  await on.editor.command("Starling: Change…");
  await on.editor.answer("Starling: Change tax", "Triple the tax.");
  await on.editor.row("Triple the tax.", "other · 1 to review").waitFor();
  await on.editor.command("View: Close Primary Side Bar");
  await lens("Accept").click();
  await on.onDisk("../other/tax.py", "return 30");
  assert.ok(!other("tax.py").includes("return 20"));
  assert.equal(readFileSync(join(on.scene.project, "tax.py"), "utf8"), TAX);
});

on.step("a run is undone where it was", async () => {
  await on.editor.command("Starling: Focus on Runs View");
  await on.editor.rowAction("Triple the tax.", "Undo");
  await on.onDisk("../other/tax.py", "return 20");
  assert.equal(readFileSync(join(on.scene.project, "tax.py"), "utf8"), TAX);
});
