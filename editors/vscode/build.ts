/**
 * Bundles the extension into `dist`; with `package` also makes `starling.vsix`, with the server's
 * program in it where STARLING_BINARY names one.
 */

import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, type BuildOptions } from "esbuild";

const root = dirname(fileURLToPath(import.meta.url));
process.chdir(root);

const common: BuildOptions = { bundle: true, minify: true, logLevel: "warning", metafile: true };

rmSync("dist", { recursive: true, force: true });
const bundles = await Promise.all([
  build({
    ...common,
    entryPoints: ["src/extension.ts"],
    outfile: "dist/extension.cjs",
    platform: "node",
    format: "cjs",
    target: "node20",
    external: ["vscode"],
  }),
  build({
    ...common,
    entryPoints: ["src/webview/picture.ts", "src/webview/ask.ts", "src/webview/picture.css", "src/webview/ask.css"],
    outdir: "dist",
    platform: "browser",
    format: "iife",
    target: "es2022",
  }),
]);

writeFileSync("dist/LICENSES.txt", licences(bundles.flatMap(({ metafile }) => Object.keys(metafile?.inputs ?? {}))));

/** The licences of the packages that are in the bundles. */
function licences(inputs: string[]): string {
  const folders = inputs.flatMap((input) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input)?.slice(1, 2) ?? []);
  const texts = [...new Set(folders)].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = ["LICENSE", "LICENSE.md", "License.txt", "LICENSE.txt"]
      .map((one) => join(folder, one))
      .find((one) => existsSync(one));
    return `${name} ${version} (${license})\n\n${file ? readFileSync(file, "utf8") : ""}`;
  });
  return texts.join("\n\n----\n\n");
}

if (process.argv[2] === "package") {
  for (const licence of ["LICENSE-MIT", "LICENSE-APACHE"]) {
    copyFileSync(join("../..", licence), licence);
  }
  rmSync("bin", { recursive: true, force: true });
  const binary = process.env["STARLING_BINARY"];
  if (binary) {
    mkdirSync("bin");
    const name = process.platform === "win32" ? "starling.exe" : "starling";
    copyFileSync(binary, join("bin", name));
    chmodSync(join("bin", name), 0o755);
  }
  const target = binary ? ["--target", `${process.platform}-${process.arch}`] : [];
  const vsce = join("node_modules", "@vscode", "vsce", "vsce");
  const made = ["package", "--no-dependencies", "--skip-license", "--out", "starling.vsix", ...target];
  execFileSync(process.execPath, [vsce, ...made], { stdio: "inherit" });
}
