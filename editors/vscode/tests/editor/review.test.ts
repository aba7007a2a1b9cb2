/** A task over several files, as a person goes through it; each step is looked for on the screen and on disk. */

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, before, test } from "node:test";
import { Editor } from "./editor.ts";
import { makeScene, type Scene, textOf } from "./scene.ts";

let scene: Scene;
let editor: Editor;

before(async () => {
  scene = makeScene();
  editor = await Editor.open(scene, { theme: "dark", width: 1280, height: 800 });
});

after(async () => {
  await editor.close();
  if (failed === null) {
    rmSync(scene.folder, { recursive: true, force: true });
  }
});

let failed: string | null = null;

/** A step, possible only after those before it; when it fails, what was on the screen is kept. */
function step(name: string, act: () => Promise<void>): void {
  test(name, { timeout: 60_000 }, async () => {
    assert.equal(failed, null, "a step before it failed");
    try {
      await act();
    } catch (error) {
      failed = name;
      await editor.picture(`failed ${name}`);
      throw error;
    }
  });
}

/** Waits until a file on disk holds (or holds no more) a text. */
async function onDisk(path: string, text: string, held: "held" | "gone" = "held"): Promise<void> {
  const until = Date.now() + 15_000;
  while (textOf(scene, path).includes(text) !== (held === "held")) {
    assert.ok(Date.now() < until, `${path}: ${JSON.stringify(text)} is not ${held}:\n${textOf(scene, path)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const toReview = (number: number) => editor.page.locator(`[aria-label="To review, ${number}"]`);

step("the server is ready when a file is opened", async () => {
  await editor.openFile("parcels/advice.py");
  await editor.openFile("parcels/quote.py");
  await editor.page.locator('.statusbar-item [aria-label^="Starling. Ready"]').waitFor();
});

step("a task wakes agents, and an intent waits", async () => {
  await editor.command("Starling: New Task…");
  await editor.answer("Starling: New Task", scene.task);
  await editor.row("means to:").waitFor();
  await editor.page.locator('[aria-label^="Agents, "]').waitFor();
  await editor.row("waits for leave").waitFor();
  await editor.status("1 to review").waitFor();
});

step("the accepted intent becomes proposals, with reason and evidence", async () => {
  await editor.rowAction("means to:", "Accept");
  await toReview(2).waitFor();
  await editor.status("2 to review").waitFor();
  await editor.row(/#\d quote/).locator(".monaco-tl-twistie").click();
  await editor.row(/the season's percentage is added/i).waitFor();
  await editor.row(/contract: .*parameter "on" added/).waitFor();
  await editor.picture("dark waiting");
});

step("the picture shows who asks whom", async () => {
  await editor.command("Starling: Show Picture of the Run");
  const picture = await editor.view("#field .node");
  await picture.locator(".node.waiting", { hasText: "quote" }).waitFor();
  await picture.locator(".edge.proposal.live").first().waitFor();
  await picture.locator("#talk li", { hasText: "round twice" }).waitFor();
  await editor.picture("dark picture");
});

step("a rejected proposal comes back revised", async () => {
  await editor.row(/#\d percent/).click();
  await editor.page.locator(".tab.active", { hasText: /Proposal #\d: percent/ }).waitFor();
  await editor.titleAction("Reject");
  await editor.answer("Starling: Reject", "Say in the docstring that both days are included.");
  await editor.row(/rejected: Say in the docstring/).waitFor();
  await editor.row("#3 percent", "waits for you").click();
  await editor.lines(".monaco-diff-editor .editor.modified").filter({ hasText: "both days included" }).waitFor();
  assert.ok(!textOf(scene, "parcels/rates.py").includes("season"), "what waits or was rejected is not on disk");
  await editor.picture("dark revised");
});

step("the diff is against the buffer as it is, typing included", async () => {
  await editor.row(/#\d quote/).click();
  await editor.page.locator(".tab.active", { hasText: /Proposal #\d: quote/ }).waitFor();
  const right = editor.lines(".monaco-diff-editor .editor.modified");
  await right.filter({ hasText: "season(on)" }).waitFor();
  await editor.picture("dark diff");
  await editor.openFile("parcels/quote.py");
  await editor.page.keyboard.press("Control+Home");
  await editor.page.keyboard.type("# typed meanwhile 🙂\n");
  await editor.row(/#\d quote/).click();
  await editor.lines(".monaco-diff-editor .editor.modified").filter({ hasText: "typed meanwhile" }).waitFor();
  assert.ok(!textOf(scene, "parcels/quote.py").includes("season"), "nothing is on disk before it is accepted");
});

step("accepting in the title bar changes the buffer, keeps the typing, and shows the next proposal", async () => {
  await editor.titleAction("Accept");
  await editor.page.locator(".tab.active", { hasText: /Proposal #\d: percent/ }).waitFor();
  await editor.row(/#\d quote/, "applied").waitFor();
  // It held unsaved typing: saving it is the user's to do.
  assert.ok(!textOf(scene, "parcels/quote.py").includes("season"));
  await editor.openFile("parcels/quote.py");
  await editor.page.keyboard.press("Control+S");
  await onDisk("parcels/quote.py", "def quote(parcel, *, on):");
  await onDisk("parcels/quote.py", "# typed meanwhile 🙂\n");
});

step("a set over several files is reviewed and accepted as one", async () => {
  await toReview(4).waitFor();
  await editor.row(/#\d cheapest_zone/, "waits for you").click();
  await editor.page.locator(".tab.active", { hasText: /cheapest_zone|percent/ }).waitFor();
  const shown = editor.page.locator(".editor-instance .view-lines");
  await shown.filter({ hasText: "on=day" }).first().waitFor();
  await shown.filter({ hasText: "on=self.day" }).first().waitFor();
  await editor.picture("dark set");
  await editor.titleAction("Accept");
  await onDisk("parcels/advice.py", "quote(parcel, on=day) - quote(parcel, on=later)");
  await onDisk("parcels/invoice.py", "on=self.day");
});

step("accepting all that is left puts the rest on disk", async () => {
  await editor.command("Starling: Accept All");
  await onDisk("parcels/rates.py", "23 December, both days included.");
});

step("the run settles and says so", async () => {
  await editor.row(/^Settled: no agent has work/).waitFor();
  await editor.status(/settled · \d+ calls/).waitFor();
  await editor.picture("dark settled");
});

step("the tests that checked the proposals are in the test view", async () => {
  await editor.command("Testing: Focus on Test Explorer View");
  await editor.page.locator(".test-explorer .monaco-list-row", { hasText: "tests.test_quote" }).waitFor();
  await editor.picture("dark tests");
});

step("undo takes back the agents' lines and leaves the typing", async () => {
  await editor.command("Starling: Undo");
  await onDisk("parcels/rates.py", "season", "gone");
  await onDisk("parcels/quote.py", "season", "gone");
  await onDisk("parcels/invoice.py", "on=self.day", "gone");
  await onDisk("parcels/quote.py", "# typed meanwhile 🙂\n");
  await editor.command("Starling: Focus on Runs View");
  await editor.row("undone").waitFor();
});
