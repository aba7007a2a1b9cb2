import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { runParameters, serverArguments, withModel } from "../../src/model/arguments.ts";
import { findBinary, type Places } from "../../src/model/binary.ts";

test("the server is started with what the user has set", () => {
  assert.deepEqual(serverArguments({}), ["lsp"]);
  assert.deepEqual(
    serverArguments({ "network.attempts": 2, "tests.command": "make test", "language.servers": ["ty"] }),
    ["lsp", "-c", "network.attempts=2", "-c", "tests.command=make test", "-c", 'language.servers=["ty"]'],
  );
});

test("a run says only what the user has changed", () => {
  assert.deepEqual(runParameters({}), { limits: {} });
  assert.deepEqual(
    runParameters({
      "run.driver": "single",
      "run.askIntent": "never",
      "limits.calls": 5,
      "limits.dollars": null,
      "tests.command": "",
    }),
    { driver: "single", ask_intent: "never", limits: { calls: 5 } },
  );
});

const places: Places = {
  setting: "",
  extension: "/ext",
  path: "/a:/b",
  home: "/home/u",
  folders: ["/work"],
  windows: "other",
};

test("the setting comes first, then the bundled program, then PATH, then cargo's folder", () => {
  const programs = new Set([
    "/own/starling",
    "/ext/bin/starling",
    "/b/starling",
    "/home/u/.cargo/bin/starling",
    "/home/u/x",
  ]);
  const find = (more: Partial<Places> = {}) => {
    const found = findBinary({ ...places, ...more }, (path) => programs.has(path));
    return found.kind === "found" ? found.path : found.message;
  };
  assert.equal(find({ setting: "/own/starling" }), "/own/starling");
  assert.equal(find({ setting: "~/x" }), "/home/u/x");
  assert.equal(find(), "/ext/bin/starling");
  programs.delete("/ext/bin/starling");
  assert.equal(find(), "/b/starling");
  programs.delete("/b/starling");
  assert.equal(find(), "/home/u/.cargo/bin/starling");
  programs.delete("/home/u/.cargo/bin/starling");
  assert.match(find(), /cargo install .* starling\.path/);
  assert.match(find({ setting: "/gone" }), /starling\.path says \/gone/);
});

test("no program of an open folder is started, and none of the current one", () => {
  const paths = ["", ".", "bin", "/work", "/work/.venv/bin", "/workbench", "/b"];
  const asked: string[] = [];
  findBinary({ ...places, path: paths.join(":") }, (path) => asked.push(path) < 0);
  assert.deepEqual(asked, ["/ext/bin/starling", "/workbench/starling", "/b/starling", "/home/u/.cargo/bin/starling"]);
  const windows = { ...places, folders: ["c:\\work"], windows: "windows" as const };
  const found = findBinary({ ...windows, path: "C:\\Work\\bin;bin;D:\\tools" }, (path) => path.includes("tools"));
  assert.deepEqual(found, { kind: "found", path: "D:\\tools/starling.exe", from: "path" });
});

test("a wrong setting is not passed over in silence", () => {
  const found = findBinary({ ...places, setting: "/gone" }, (path) => path === "/b/starling");
  assert.equal(found.kind, "missing");
});

const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));

test("every setting is described, and those that decide where requests go cannot come from a project", () => {
  const settings: [string, { markdownDescription?: string; scope?: string }][] =
    manifest.contributes.configuration.flatMap((section: { properties: object }) => Object.entries(section.properties));
  assert.deepEqual(
    settings.filter(([, { markdownDescription }]) => !markdownDescription).map(([key]) => key),
    [],
  );
  const machine = settings.filter(([, { scope }]) => scope === "machine").map(([key]) => key);
  assert.deepEqual(machine, [
    "starling.path",
    "starling.model",
    "starling.config",
    "starling.environment",
    "starling.run.approve",
  ]);
});

test("menus, keys and links name commands that exist", () => {
  const { commands, menus, keybindings, viewsWelcome, walkthroughs } = manifest.contributes;
  const known = new Set(commands.map(({ command }: { command: string }) => command));
  const text = JSON.stringify([menus, keybindings, viewsWelcome, walkthroughs]);
  const named = [...text.matchAll(/starling\.client\.\w+/g)].map(([name]) => name);
  assert.deepEqual(
    named.filter((name) => !known.has(name)),
    [],
  );
  const source = readFileSync(new URL("../../src/edge/commands.ts", import.meta.url), "utf8");
  const unregistered = [...known].filter(
    (name) => !new RegExp(`^ {4}${String(name).split(".").pop()}:`, "m").test(source),
  );
  assert.deepEqual(unregistered, []);
});

test("the chosen model is named by runs and questions, and an explicit one stays", () => {
  const about = { task: "x" };
  assert.deepEqual(withModel("starling.run", about, "openai:a"), { model: "openai:a", task: "x" });
  assert.deepEqual(withModel("starling.retry", { run: "r", model: "b" }, "openai:a"), { run: "r", model: "b" });
  assert.equal(withModel("starling.run", about, ""), about);
  assert.equal(withModel("starling.accept", about, "openai:a"), about);
});
