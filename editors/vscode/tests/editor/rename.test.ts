/** F2 renames a function in all files; what is not certain is left to the user. */

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTested, textOf } from "./scene.ts";
import { stage } from "./stage.ts";

const on = stage(makeTested, { theme: "light", width: 1100, height: 800 });

const SHOP = `class Shop:
    def open(self):
        return 1


class Door:
    def open(self):
        return 2


def enter(shop: Shop, thing):
    return shop.open() + thing.open()
`;

on.step("a function gets another name in all files", async () => {
  await on.editor.openFile("price.py");
  await on.editor.page.locator('.statusbar-item [aria-label^="Starling. Ready"]').waitFor();
  await on.editor.rename(4, 6, "cost");
  await on.editor.page.locator(".view-line", { hasText: "def cost():" }).first().waitFor();
  await on.editor.picture("light renamed");
  await on.editor.command("File: Save All");
  await on.onDisk("price.py", "def cost():");
  await on.onDisk("test_bill.py", "from price import cost");
  await on.onDisk("test_bill.py", "self.assertEqual(cost() * tax(), 1190)");
  assert.ok(textOf(on.scene, "price.py").includes('return "price"'), "another word");
});

on.step("a use that may mean something else is shown before anything changes", async () => {
  writeFileSync(join(on.scene.project, "shop.py"), SHOP);
  await on.editor.openFile("shop.py");
  await on.editor.rename(2, 10, "unlock");
  await on.editor.page.getByText("Refactor Preview").first().waitFor();
  await on.editor.picture("light to confirm");
  assert.equal(textOf(on.scene, "shop.py"), SHOP);
  await on.editor.page.getByRole("button", { name: "Apply" }).click();
  await on.editor.page.locator(".view-line", { hasText: "def unlock(self):" }).first().waitFor();
  await on.editor.command("File: Save All");
  await on.onDisk("shop.py", "return shop.unlock() + thing.open()");
});
