/** Where the server's program is. */

export type Found =
  { kind: "found"; path: string; from: "setting" | "bundled" | "path" } | { kind: "missing"; message: string };

export interface Places {
  /** The setting `starling.path`. */
  setting: string;
  /** The folder of this extension. */
  extension: string;
  /** The variable PATH. */
  path: string;
  home: string;
  windows: "windows" | "other";
}

/** The setting, else the program that came with the extension, else the first one on PATH. */
export function findBinary(places: Places, isProgram: (path: string) => boolean): Found {
  const name = places.windows === "windows" ? "starling.exe" : "starling";
  const separator = places.windows === "windows" ? ";" : ":";
  if (places.setting !== "") {
    const path = places.setting.replace(/^~(?=\/)/, places.home);
    return isProgram(path)
      ? { kind: "found", path, from: "setting" }
      : {
          kind: "missing",
          message: `The setting starling.path says ${path}, but no program is there. Correct or empty it.`,
        };
  }
  const bundled = `${places.extension}/bin/${name}`;
  if (isProgram(bundled)) {
    return { kind: "found", path: bundled, from: "bundled" };
  }
  for (const folder of [...places.path.split(separator), `${places.home}/.cargo/bin`].filter(Boolean)) {
    const path = `${folder}/${name}`;
    if (isProgram(path)) {
      return { kind: "found", path, from: "path" };
    }
  }
  const message =
    "The program `starling` was not found: not with this extension, not on PATH, not in ~/.cargo/bin. " +
    "Install it with `cargo install --path .` in Starling's sources, or say in the setting starling.path where it is.";
  return { kind: "missing", message };
}
