/** The real editor in a browser, driven as a person would: by keys, clicks, and what is on the screen. */

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { type Browser, chromium, type Frame, type Locator, type Page } from "playwright-core";
import type { Scene } from "./scene.ts";

export type Theme = keyof typeof THEMES;

const THEMES = {
  light: "Default Light Modern",
  dark: "Default Dark Modern",
  contrast: "Default High Contrast",
  "light contrast": "Default High Contrast Light",
};
/** A machine may be slow or busy: nothing here depends on how long something takes. */
export const WAIT = 1000 * Number(process.env["STARLING_WAIT_SECONDS"] ?? 240);

export interface Options {
  theme: Theme;
  width: number;
  height: number;
  /** Settings of the user besides those that every test needs. */
  settings?: Record<string, unknown>;
  /** Whether folders are asked to be trusted. */
  trust?: "ask" | "given";
  /** `default`: nothing is set but the server, as in a fresh editor; the theme is not followed either. */
  preferences?: "default" | "quiet";
}

/** Needed programs, from the environment (`tests/run` sets it). */
function need(name: string): string {
  const value = process.env[name];
  if (!value) {
    throw new Error(`${name} is not set: start the tests by tests/run`);
  }
  return value;
}

/** How long the palette may take to show something, and how often it is opened. */
const PICK_MS = 20_000;
const PICKS = 8;

export class Editor {
  readonly page: Page;
  readonly #process: ChildProcess;
  readonly #browser: Browser;
  readonly #address: string;

  private constructor(page: Page, process: ChildProcess, browser: Browser, address: string) {
    this.page = page;
    this.#process = process;
    this.#browser = browser;
    this.#address = address;
  }

  static async open(scene: Scene, options: Options): Promise<Editor> {
    const port = await freePort();
    const browser = await chromium.launch({
      executablePath: need("CHROMIUM"),
      // A container may have next to no shared memory.
      args: ["--no-sandbox", "--disable-dev-shm-usage"],
      timeout: WAIT,
    });
    const child = startCodeServer(scene, options, port);
    const colorScheme = options.theme.startsWith("light") ? "light" : "dark";
    const page = await browser.newPage({ viewport: { width: options.width, height: options.height }, colorScheme });
    const open = scene.open ?? `folder=${encodeURIComponent(scene.project)}`;
    const editor = new Editor(page, child, browser, `http://127.0.0.1:${port}/?${open}`);
    try {
      await reachable(port);
      await editor.#goThere();
    } catch (error) {
      await editor.close();
      throw error;
    }
    return editor;
  }

  /** One more window on the same. To be closed by its page. */
  async window(): Promise<Editor> {
    const page = await this.#browser.newPage({ viewport: this.page.viewportSize() });
    const other = new Editor(page, this.#process, this.#browser, this.#address);
    await other.#goThere();
    return other;
  }

  async #goThere(): Promise<void> {
    this.page.setDefaultTimeout(WAIT);
    await this.page.goto(this.#address);
    await this.page.locator(".monaco-workbench").waitFor();
  }

  async close(): Promise<void> {
    await this.#browser.close();
    const pid = this.#process.pid;
    if (pid !== undefined) {
      // The whole group: the main process alone leaves children.
      process.kill(-pid, "SIGTERM");
    }
  }

  /** Runs a command by its name in the palette. */
  async command(name: string): Promise<void> {
    await this.#pick("F1", `>${name}`, () =>
      this.page
        .locator(`.quick-input-list .monaco-list-row[aria-label^="${name}"]`)
        .first()
        .click({ timeout: PICK_MS }),
    );
  }

  /** Opens the palette and types into it; again when it closes by itself, as it does when the focus moves. */
  async #pick(key: string, text: string, take: () => Promise<void>): Promise<void> {
    for (let tries = 1; ; tries++) {
      try {
        await this.page.keyboard.press(key);
        await this.page.locator(".quick-input-widget input").first().fill(text, { timeout: PICK_MS });
        return await take();
      } catch (error) {
        if (tries === PICKS) {
          throw error;
        }
        await this.page.keyboard.press("Escape");
      }
    }
  }

  /** Presses a chord of Starling: `Ctrl+'`, then a key. */
  async chord(key: string): Promise<void> {
    await this.page.keyboard.press("Control+'");
    await this.page.keyboard.press(key);
  }

  /** Types into the box that asks for a text, and sends it. */
  async answer(title: string, text: string): Promise<void> {
    const box = this.page.locator(".quick-input-widget", { hasText: title });
    await box.waitFor();
    await box.locator("input").first().fill(text);
    await this.page.keyboard.press("Enter");
    await box.waitFor({ state: "hidden" });
  }

  /** Writes a task into the panel, and sends it. */
  async task(text: string): Promise<void> {
    const panel = await this.view("#question");
    await panel.locator('#mode-task[aria-pressed="true"]').waitFor();
    await panel.locator("#question").fill(text);
    await panel.locator("#question").press("Enter");
  }

  /** Picks from a list that asks something. */
  async choose(question: string, choice: string): Promise<void> {
    const box = this.page.locator(".quick-input-widget", { has: this.page.locator(`[placeholder="${question}"]`) });
    await box.locator(".monaco-list-row", { hasText: choice }).first().click();
  }

  async openFile(path: string): Promise<void> {
    const name = path.split("/").pop() ?? path;
    const files = this.page.locator(".quick-input-list .monaco-list-row", { hasText: name, hasNotText: "Proposal" });
    await this.#pick("Control+P", path, () => files.first().click({ timeout: PICK_MS }));
    await this.page.locator(`.tab.active[aria-label^="${name}"]`).first().waitFor();
    await this.page.locator(".editor-instance .monaco-editor.focused").first().waitFor();
  }

  /** Puts the cursor on a line of the open file. */
  async goTo(line: number): Promise<void> {
    await this.#pick("Control+G", `:${line}`, async () => {
      await this.page.keyboard.press("Enter");
      await this.status(`Ln ${line},`).waitFor({ timeout: PICK_MS });
    });
  }

  /** Renames the name at a column of a line, as F2 does. */
  async rename(line: number, column: number, to: string): Promise<void> {
    await this.#pick("Control+G", `:${line}:${column}`, async () => {
      await this.page.keyboard.press("Enter");
      await this.status(`Ln ${line}, Col ${column}`).waitFor({ timeout: PICK_MS });
    });
    await this.page.keyboard.press("F2");
    const box = this.page.locator(".rename-box input, .rename-box .rename-input").first();
    await box.waitFor();
    await box.fill(to);
    await this.page.keyboard.press("Enter");
  }

  /** The first row of the tree of runs that holds all these texts. */
  row(...texts: (string | RegExp)[]): Locator {
    const rows = this.page.locator('[id="workbench.view.extension.starling"] .monaco-list-row');
    return texts.reduce<Locator>((found, text) => found.filter({ hasText: text }), rows).first();
  }

  /** Presses one of the small buttons of a row, which show under the mouse; a row may move away from it. */
  async rowAction(text: string | RegExp, action: string): Promise<void> {
    const row = this.row(text);
    const button = row.locator(`.actions-container a[aria-label^="${action}"]`);
    const until = Date.now() + WAIT;
    for (;;) {
      await row.hover();
      try {
        return await button.click({ timeout: 1000 });
      } catch (error) {
        if (Date.now() > until) {
          throw error;
        }
      }
    }
  }

  /** Opens a row, which may move away under the mouse while the tree is drawn anew. */
  async expand(text: string | RegExp): Promise<void> {
    const row = this.row(text);
    const until = Date.now() + WAIT;
    while ((await row.getAttribute("aria-expanded")) !== "true") {
      if (Date.now() > until) {
        throw new Error(`${text} does not open`);
      }
      await row
        .locator(".monaco-tl-twistie.collapsed")
        .click({ timeout: 1000 })
        .catch(() => undefined);
      await row
        .and(this.page.locator('[aria-expanded="true"]'))
        .waitFor({ timeout: 1000 })
        .catch(() => undefined);
    }
  }

  /** Clicks the name of a row. */
  async clickRow(...texts: (string | RegExp)[]): Promise<void> {
    await this.row(...texts)
      .locator(".label-name")
      .first()
      .click();
  }

  /** Presses a button in the title bar of the editor. */
  async titleAction(action: string): Promise<void> {
    await this.page.locator(`.editor-actions a[aria-label^="${action}"]`).first().click();
  }

  /** The entry in the status bar. */
  status(text: string | RegExp): Locator {
    return this.page.locator(".statusbar-item", { hasText: text });
  }

  /** The side of a diff that shows what is proposed, once it holds a text. */
  proposed(text: string): Locator {
    return this.page.locator(".monaco-diff-editor .editor.modified .view-lines", { hasText: text }).last();
  }

  /** Waits for a remark at the end of a line: the editor draws it by its style sheet. */
  async remark(text: string, state: "shown" | "gone" = "shown"): Promise<void> {
    const holds = ([wanted, present]: [string, boolean]) => {
      const spans = [...document.querySelectorAll(".view-lines span")];
      return spans.some((one) => getComputedStyle(one, "::after").content.includes(wanted)) === present;
    };
    await this.page.waitForFunction(holds, [text, state === "shown"] as [string, boolean]);
  }

  /** Something that is offered at the end of a line: a link that shows under the mouse. */
  offer(title: string): { waitFor(): Promise<void>; click(): Promise<void> } {
    const link = this.page.locator(".monaco-hover a", { hasText: title }).first();
    const find = async (): Promise<void> => {
      const until = Date.now() + WAIT;
      while (Date.now() < until) {
        for (const { x, y } of await this.#remarks("Starling")) {
          await this.page.mouse.move(x - 40, y);
          await this.page.mouse.move(x, y, { steps: 4 });
          const isThere = await link.waitFor({ timeout: 2_000 }).then(
            () => true,
            () => false,
          );
          if (isThere) {
            return;
          }
        }
        // What is under the mouse is shown anew when it comes back.
        await this.page.mouse.move(2, 2);
        await this.page.waitForTimeout(200);
      }
      throw new Error(`${title} is offered at the end of no line`);
    };
    return {
      waitFor: async () => {
        await find();
        await this.page.mouse.move(2, 2);
      },
      click: async () => {
        await find();
        await link.click();
      },
    };
  }

  /** Where remarks that hold a text stand on the screen. */
  #remarks(text: string): Promise<{ x: number; y: number }[]> {
    return this.page.evaluate((wanted) => {
      const spans = [...document.querySelectorAll(".view-lines span")];
      const said = spans.filter((one) => getComputedStyle(one, "::after").content.includes(wanted));
      return said.map((one) => {
        const { right, top, bottom } = one.getBoundingClientRect();
        const edge = one.closest(".editor-scrollable")?.getBoundingClientRect().right ?? right;
        return { x: Math.min(right, edge - 30) - 12, y: (top + bottom) / 2 };
      });
    }, text);
  }

  /** How far below the top of the window a line stands that holds a text, in pixels. */
  async topOf(text: string): Promise<number> {
    const box = await this.page.locator(".view-line", { hasText: text }).first().boundingBox();
    if (!box) {
      throw new Error(`no line holds ${text}`);
    }
    return box.y;
  }

  /** A page inside the editor, by something that it holds. */
  async view(holds: string): Promise<Frame> {
    const until = Date.now() + WAIT;
    while (Date.now() < until) {
      for (const frame of this.page.frames()) {
        // Frames come and go while the editor builds them.
        if (
          (await frame
            .locator(holds)
            .count()
            .catch(() => 0)) > 0
        ) {
          return frame;
        }
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(`no page holds ${holds}`);
  }

  async picture(name: string): Promise<void> {
    const folder = need("STARLING_PICTURES");
    mkdirSync(folder, { recursive: true });
    await this.page.screenshot({ path: join(folder, `${name}.png`) });
  }
}

/** What keeps the screen still for tests. */
function quiet(theme: Theme): Record<string, unknown> {
  return {
    "workbench.colorTheme": THEMES[theme],
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": false,
    "window.commandCenter": false,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "telemetry.telemetryLevel": "off",
    "chat.disableAIFeatures": true,
    "editor.minimap.enabled": false,
    // In a browser the editor saves by itself; what is saved when is a part of what is tested.
    "files.autoSave": "off",
  };
}

function startCodeServer(scene: Scene, options: Options, port: number): ChildProcess {
  const { theme, settings, trust, preferences } = options;
  const data = join(scene.folder, "data");
  const config = join(scene.folder, "code-server.yaml");
  writeFileSync(config, `bind-addr: 127.0.0.1:${port}\nauth: none\ncert: false\n`);
  const all = JSON.stringify({
    ...(preferences === "default" ? {} : quiet(theme)),
    "starling.path": need("STARLING_BINARY"),
    ...scene.settings,
    "starling.environment": {
      ...(scene.settings["starling.environment"] ?? {}),
      STARLING_CACHE_DIR: scene.cache,
      STARLING_LOG: process.env["STARLING_LOG"] ?? "",
    },
    ...settings,
  });
  for (const place of ["User", "Machine"]) {
    mkdirSync(join(data, place), { recursive: true });
    writeFileSync(join(data, place, "settings.json"), all);
  }
  const flags = [
    "--disable-telemetry",
    "--disable-update-check",
    ...(trust === "ask" ? [] : ["--disable-workspace-trust"]),
  ];
  const places = ["--config", config, "--user-data-dir", data, "--extensions-dir", need("STARLING_EXTENSIONS")];
  // A group of its own, so that all of it can be ended together.
  return spawn(need("STARLING_NODE"), [need("CODE_SERVER"), ...places, ...flags], { detached: true, stdio: "ignore" });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === "string") {
    throw new Error("no free port");
  }
  return address.port;
}

async function reachable(port: number): Promise<void> {
  const until = Date.now() + WAIT;
  for (;;) {
    try {
      await fetch(`http://127.0.0.1:${port}/healthz`);
      return;
    } catch (error) {
      if (Date.now() > until) {
        throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}
