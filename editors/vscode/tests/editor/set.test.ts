/** Two changes that break a test alone and keep it together: one review, one accept. */

import assert from "node:assert/strict";
import { proposes, wakes } from "./model.ts";
import { makeTested, PRICE, textOf } from "./scene.ts";
import { stage } from "./stage.ts";

const on = stage(makeTested, { theme: "dark", width: 1280, height: 800 });

const TASK = "Prices are in tenths.";

on.step("two proposals that only pass together come up as one", async () => {
  on.scene.model.knows(TASK, {
    scout: [wakes("price.py::price", "tax.py::tax")],
    "price.py::price": [proposes("Tenths.", "return base + extra", "return (base + extra) * 10")],
    "tax.py::tax": [proposes("A tenth of it.", "return 10", "return 1")],
  });
  await on.editor.openFile("price.py");
  await on.editor.page.locator('.statusbar-item [aria-label^="Starling. Ready"]').waitFor();
  await on.editor.command("Starling: New Task…");
  await on.editor.task(TASK);
  await on.editor.clickRow(/#\d price/, "waits for you");
  await on.editor.page.locator(".tab.active", { hasText: /^Proposals #\d #\d/ }).waitFor();
  const shown = on.editor.page.locator(".editor-instance .view-lines");
  await shown.filter({ hasText: "(base + extra) * 10" }).first().waitFor();
  await shown.filter({ hasText: "return 1" }).first().waitFor();
  await on.editor.picture("dark set");
  assert.equal(textOf(on.scene, "price.py"), PRICE, "what waits is not on disk");
});

on.step("one accept puts both on disk", async () => {
  await on.editor.titleAction("Accept");
  await on.onDisk("price.py", "return (base + extra) * 10");
  await on.onDisk("tax.py", "return 1\n");
  await on.editor.row(/#\d price/, "applied").waitFor();
  await on.editor.row(/#\d tax/, "applied").waitFor();
});
