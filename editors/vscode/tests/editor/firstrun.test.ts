/** A fresh install: no model, then no key, then a dead endpoint. Each says what helps, and the task is kept. */

import { proposes, wakes } from "./model.ts";
import { makePrices, type Prices } from "./scene.ts";
import { stage } from "./stage.ts";

const KEY = "sk-right";

/** The prices, with nothing set but where the endpoint is. */
async function makeFresh(): Promise<Prices> {
  const scene = await makePrices();
  scene.model.key = KEY;
  const settings = {
    "starling.environment": { OPENAI_BASE_URL: scene.model.address },
    "starling.config": { "network.attempts": 1 },
  };
  return { ...scene, settings };
}

const on = stage(makeFresh, { theme: "light", width: 1400, height: 860, preferences: "default" });

const PRICE_PATH = "price.py::price";
const TASK = "Double the base.";
const toReview = (number: number) => on.editor.page.locator(`[aria-label="To review, ${number}"]`);
const toast = (text: string) => on.editor.page.locator(".notification-toast", { hasText: text }).first();
const press = (text: string, button: string) =>
  toast(text).locator(".monaco-button", { hasText: button }).first().click();

on.step("without a model the first task asks to choose one, or to download one", async () => {
  await on.editor.openFile("price.py");
  await on.editor.page.locator('.statusbar-item [aria-label^="Starling. Ready"]').waitFor();
  on.scene.model.knows(TASK, {
    scout: [wakes(PRICE_PATH)],
    [PRICE_PATH]: [proposes("Twice the base.", "base = 100", "base = 200")],
  });
  await on.editor.chord("t");
  await on.editor.task(TASK);
  await toast("local").waitFor();
  await on.editor.picture("default no model");
  await press("local", "Choose a Model");
  await on.editor.answer("Starling: Choose a Model", "openai:scripted");
});

on.step("a refused key asks for another, and the same task runs with it", async () => {
  await toast("401").waitFor();
  await on.editor.picture("default no key");
  await press("401", "Set API Key");
  await on.editor.answer("The environment variable that holds it", "OPENAI_API_KEY");
  await on.editor.answer("The value of OPENAI_API_KEY", KEY);
  await toReview(1).waitFor();
  await on.editor.row(TASK, "1 to review").waitFor();
  await on.editor.chord("a");
  await on.editor.proposed("base = 200").waitFor();
  await on.editor.chord("a");
  await on.onDisk("price.py", "base = 200");
});

on.step("an endpoint that does not answer is asked again when the user says so", async () => {
  on.scene.model.dead = true;
  on.scene.model.knows("Raise the extra.", {
    scout: [wakes(PRICE_PATH)],
    [PRICE_PATH]: [proposes("25 now.", "extra = 19", "extra = 25")],
  });
  await on.editor.chord("t");
  await on.editor.task("Raise the extra.");
  await toast("connection failed").waitFor();
  await on.editor.picture("default dead endpoint");
  on.scene.model.dead = false;
  await press("connection failed", "Try Again");
  await toReview(1).waitFor();
  await on.editor.row("Raise the extra.", "1 to review").waitFor();
});
