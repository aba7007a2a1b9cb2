/** What the server asks of the editor's own providers, answered by those of another extension. */

import assert from "node:assert/strict";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { WAIT } from "./editor.ts";
import { makePrices, type Prices } from "./scene.ts";
import { stage } from "./stage.ts";

const BILL = "from tax import tax\n\n\ndef bill():\n    return tax()  # problem\n";

/** The prices, and a program that asks in the place of the server. */
async function makeAsker(): Promise<Prices & { heard: string }> {
  const scene = await makePrices();
  const heard = join(scene.folder, "heard.jsonl");
  const program = join(scene.folder, "asker");
  const asker = resolve(import.meta.dirname, "asker.ts");
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${asker}' '${heard}'\n`);
  chmodSync(program, 0o755);
  writeFileSync(join(scene.project, "bill.py"), BILL);
  return { ...scene, heard, settings: { "starling.path": program } };
}

const on = stage(makeAsker, { theme: "light", width: 1000, height: 700 });

interface Heard {
  asked: string;
  result?: unknown;
  code?: number;
}

/** All that was heard, once so many answers are there. */
async function heard(count: number): Promise<Map<string, Heard>> {
  const until = Date.now() + WAIT;
  for (;;) {
    const lines = existsSync(on.scene.heard) ? readFileSync(on.scene.heard, "utf8").trimEnd().split("\n") : [];
    if (lines.length >= count) {
      return new Map(lines.map((line) => JSON.parse(line)).map((one: Heard) => [one.asked, one]));
    }
    assert.ok(Date.now() < until, `only ${lines.length} answers came`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

on.step("definitions, references and problems come from the editor; what nobody knows is null", async () => {
  await on.editor.openFile("bill.py");
  await on.editor.page.locator(".squiggly-warning").first().waitFor();
  const answers = await heard(5);
  const place = (path: string, line: number, start: number) => ({
    uri: `file://${join(on.scene.project, path)}`,
    range: { start: { line, character: start }, end: { line, character: start + 3 } },
  });
  const of = (what: string) => answers.get(what)?.result;
  assert.deepEqual(of("definition"), [place("tax.py", 3, 4)]);
  const references = of("references") as { uri: string }[];
  assert.deepEqual(
    references.filter(({ uri }) => uri.endsWith("/bill.py")),
    [place("bill.py", 0, 5), place("bill.py", 0, 16), place("bill.py", 4, 11)],
  );
  assert.equal(of("implementation"), null);
  const [problem] = of("diagnostics") as { message: string; source: string }[];
  assert.deepEqual([problem?.message, problem?.source], ["this is a problem", "companion"]);
});

on.step("a question about another text than the buffer's is refused", async () => {
  const answers = await heard(5);
  assert.equal(answers.get("definition of another version")?.code, -32801);
  // Nothing was opened on the screen for an answer.
  assert.equal(await on.editor.page.locator(".tabs-container .tab").count(), 1);
});
