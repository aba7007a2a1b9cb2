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
  /** The folders that are open: no program of theirs is started unless the setting names it. */
  folders: readonly string[];
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
  const plain = (path: string) => (places.windows === "windows" ? path.replaceAll("\\", "/").toLowerCase() : path);
  const open = places.folders.map((folder) => `${plain(folder)}/`);
  const isOutside = (folder: string) =>
    isAbsolute(folder, places.windows) && !open.some((one) => `${plain(folder)}/`.startsWith(one));
  for (const folder of [...places.path.split(separator), `${places.home}/.cargo/bin`].filter(isOutside)) {
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

/** Other places of PATH lead into the current folder, which may be anyone's. */
function isAbsolute(folder: string, windows: Places["windows"]): boolean {
  return windows === "windows" ? /^([a-z]:[\\/]|[\\/]{2})/i.test(folder) : folder.startsWith("/");
}
