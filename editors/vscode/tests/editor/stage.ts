/** Steps in an editor, each possible only after those before it; and what is waited for. */

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { after, before, test } from "node:test";
import { Editor, type Options, WAIT } from "./editor.ts";
import { type Scene, textOf } from "./scene.ts";

export interface Stage<S extends Scene> {
  readonly scene: S;
  readonly editor: Editor;
  step(name: string, act: () => Promise<void>): void;
  /** Waits until a file on disk holds (or holds no more) a text. */
  onDisk(path: string, text: string, held?: "held" | "gone"): Promise<void>;
}

/** A scene and an editor for the steps of one file. */
export function stage<S extends Scene>(make: () => Promise<S>, options: Options): Stage<S> {
  let scene: S;
  let editor: Editor | undefined;
  let failed: string | null = null;
  before(async () => {
    scene = await make();
    editor = await Editor.open(scene, options);
  });
  after(async () => {
    await editor?.close();
    scene.stop();
    if (failed === null) {
      rmSync(scene.folder, { recursive: true, force: true });
    } else {
      console.log(`what it left: ${scene.folder}`);
    }
  });
  return {
    get scene() {
      return scene;
    },
    get editor() {
      assert.ok(editor, "the editor did not start");
      return editor;
    },
    step(name, act) {
      test(name, { timeout: 4 * WAIT }, async () => {
        assert.equal(failed, null, "a step before it failed");
        try {
          await act();
        } catch (error) {
          failed = name;
          await editor?.picture(`failed ${name}`);
          throw error;
        }
      });
    },
    async onDisk(path, text, held = "held") {
      const until = Date.now() + WAIT;
      while (textOf(scene, path).includes(text) !== (held === "held")) {
        assert.ok(Date.now() < until, `${path}: ${JSON.stringify(text)} is not ${held}:\n${textOf(scene, path)}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
  };
}
