/** A task over several files, as a person goes through it; each step is looked for on the screen and on disk. */

import assert from "node:assert/strict";
import { makeParcels, textOf } from "./scene.ts";
import { stage } from "./stage.ts";

const on = stage(makeParcels, { theme: "dark", width: 1280, height: 800 });

const toReview = (number: number) => on.editor.page.locator(`[aria-label="To review, ${number}"]`);

on.step("the server is ready when a file is opened", async () => {
  await on.editor.openFile("parcels/advice.py");
  await on.editor.openFile("parcels/quote.py");
  await on.editor.page.locator('.statusbar-item [aria-label^="Starling. Ready"]').waitFor();
});

on.step("a task wakes agents, and an intent waits", async () => {
  await on.editor.command("Starling: New Task…");
  await on.editor.task(on.scene.task);
  await on.editor.row("means to:").waitFor();
  await on.editor.page.locator('[aria-label^="Agents, "]').waitFor();
  await on.editor.row("waits for leave").waitFor();
  // The other agent's proposal moves the rows of the tree, so it is waited for before a row is clicked.
  await on.editor.status("2 to review").waitFor();
});

on.step("the accepted intent becomes proposals, with reason and evidence", async () => {
  await on.editor.rowAction("means to:", "Accept");
  await toReview(2).waitFor();
  await on.editor.status("2 to review").waitFor();
  await on.editor.row(/#\d quote/, "waits for you").waitFor();
  await on.editor.expand(/#\d quote/);
  await on.editor.row(/the season's percentage is added/i).waitFor();
  await on.editor.row(/contract: .*parameter "on" added/).waitFor();
  await on.editor.picture("dark waiting");
});

on.step("the picture shows who asks whom", async () => {
  await on.editor.command("Starling: Show Picture of the Run");
  const picture = await on.editor.view("#field .node");
  await picture.locator(".node.waiting", { hasText: "quote" }).waitFor();
  await picture.locator(".edge.proposal.live").first().waitFor();
  await picture.locator("#talk li", { hasText: "round twice" }).waitFor();
  await on.editor.picture("dark picture");
});

on.step("a rejected proposal comes back revised", async () => {
  await on.editor.clickRow(/#\d percent/);
  await on.editor.page.locator(".tab.active", { hasText: /Proposal #\d: percent/ }).waitFor();
  await on.editor.titleAction("Reject");
  await on.editor.answer("Starling: Reject", "Say in the docstring that both days are included.");
  await on.editor.row(/rejected: Say in the docstring/).waitFor();
  await on.editor.clickRow("#3 percent", "waits for you");
  await on.editor.proposed("both days included").waitFor();
  assert.ok(!textOf(on.scene, "parcels/rates.py").includes("season"), "what waits or was rejected is not on disk");
  await on.editor.picture("dark revised");
});

on.step("accepting in the title bar puts a change on disk, and shows the next proposal", async () => {
  await on.editor.titleAction("Accept");
  await on.editor.page.locator(".tab.active", { hasText: /Proposal #\d: quote/ }).waitFor();
  await on.editor.row(/#\d percent/, "applied").waitFor();
  await on.onDisk("parcels/rates.py", "23 December, both days included.");
});

on.step("the diff is against the buffer as it is, typing included", async () => {
  await on.editor.clickRow(/#\d quote/);
  await on.editor.page.locator(".tab.active", { hasText: /Proposal #\d: quote/ }).waitFor();
  await on.editor.proposed("season(on)").waitFor();
  await on.editor.picture("dark diff");
  await on.editor.openFile("parcels/quote.py");
  await on.editor.page.keyboard.press("Control+Home");
  await on.editor.page.keyboard.type("# typed meanwhile 🙂\n");
  await on.editor.clickRow(/#\d quote/);
  await on.editor.proposed("typed meanwhile").waitFor();
  assert.ok(!textOf(on.scene, "parcels/quote.py").includes("season"), "nothing is on disk before it is accepted");
});

on.step("accepting changes a buffer, and keeps the typing", async () => {
  await on.editor.titleAction("Accept");
  await on.editor.row(/#\d quote/, "applied").waitFor();
  // It held unsaved typing: saving it is the user's to do.
  assert.ok(!textOf(on.scene, "parcels/quote.py").includes("season"));
  await on.editor.openFile("parcels/quote.py");
  await on.editor.page.keyboard.press("Control+S");
  await on.onDisk("parcels/quote.py", "def quote(parcel, *, on):");
  await on.onDisk("parcels/quote.py", "# typed meanwhile 🙂\n");
});

on.step("accepting all that is left puts the rest on disk", async () => {
  await toReview(3).waitFor();
  await on.editor.command("Starling: Accept All");
  await on.onDisk("parcels/advice.py", "quote(parcel, on=day) - quote(parcel, on=later)");
  await on.onDisk("parcels/invoice.py", "on=self.day");
});

on.step("the run settles and says so", async () => {
  await on.editor.row(/^Settled: no agent has work/).waitFor();
  await on.editor.status(/settled · \d+ calls/).waitFor();
  await on.editor.picture("dark settled");
});

on.step("the tests that checked the proposals are in the test view", async () => {
  await on.editor.command("Testing: Focus on Test Explorer View");
  await on.editor.page.locator(".test-explorer .monaco-list-row", { hasText: "tests.test_quote" }).waitFor();
  await on.editor.picture("dark tests");
});

on.step("undo takes back the agents' lines and leaves the typing", async () => {
  await on.editor.command("Starling: Undo");
  await on.onDisk("parcels/rates.py", "season", "gone");
  await on.onDisk("parcels/quote.py", "season", "gone");
  await on.onDisk("parcels/invoice.py", "on=self.day", "gone");
  await on.onDisk("parcels/quote.py", "# typed meanwhile 🙂\n");
  await on.editor.command("Starling: Focus on Runs View");
  await on.editor.row("undone").waitFor();
});
