/** Unified diffs: reading them, and applying one to a text that may have moved on since. */

export interface Hunk {
  /** The first line of the old text, counted from 0. */
  start: number;
  lines: { kind: " " | "-" | "+"; text: string }[];
}

export interface FileDiff {
  /** The file before; null for a file that is made. */
  from: string | null;
  /** The file after; null for a file that is deleted. */
  to: string | null;
  hunks: Hunk[];
}

/** The file that a part of a diff is about. */
export function pathOf(diff: FileDiff): string {
  return diff.to ?? diff.from ?? "";
}

export function parseDiff(text: string): FileDiff[] {
  const files: FileDiff[] = [];
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!;
    const next = lines[at + 1];
    if (line.startsWith("--- ") && next?.startsWith("+++ ")) {
      files.push({ from: named(line, "a/"), to: named(next, "b/"), hunks: [] });
      at++;
      continue;
    }
    const head = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(line);
    const file = files.at(-1);
    if (head && file) {
      const { hunk, read } = readHunk(lines, at + 1, head);
      file.hunks.push(hunk);
      at += read;
    }
  }
  return files;
}

function named(line: string, prefix: string): string | null {
  const name = line.slice(4).split("\t")[0]!.trimEnd();
  if (name === "/dev/null") {
    return null;
  }
  return name.startsWith(prefix) ? name.slice(prefix.length) : name;
}

function readHunk(lines: string[], from: number, head: RegExpExecArray): { hunk: Hunk; read: number } {
  let old = Number(head[2] ?? 1);
  let added = Number(head[4] ?? 1);
  // A hunk without old lines stands after the line that it names.
  const start = old === 0 ? Number(head[1]) : Number(head[1]) - 1;
  const hunk: Hunk = { start, lines: [] };
  let at = from;
  while ((old > 0 || added > 0) && at < lines.length) {
    const line = lines[at]!;
    const kind = line === "" ? " " : line[0];
    if (kind === " " || kind === "-" || kind === "+") {
      hunk.lines.push({ kind, text: line.slice(1) });
      old -= kind === "+" ? 0 : 1;
      added -= kind === "-" ? 0 : 1;
    } else if (kind !== "\\") {
      break;
    }
    at++;
  }
  return { hunk, read: at - from };
}

/**
 * The text with the change in it: each hunk where its old lines stand now, nearest to where they
 * stood. Null when the lines that it changes are not there any more: the user changed the same place.
 */
export function applyDiff(text: string, diff: FileDiff): string | null {
  const ending = text.includes("\r\n") ? "\r\n" : "\n";
  const lines = text.split(/\r?\n/);
  let drift = 0;
  for (const hunk of diff.hunks) {
    const placed = place(lines, hunk, drift);
    if (placed === null) {
      return null;
    }
    const { at, part } = placed;
    const old = part.lines.filter((line) => line.kind !== "+").length;
    const fresh = part.lines.filter((line) => line.kind !== "-").map((line) => line.text);
    lines.splice(at, old, ...fresh);
    drift = at - part.start + fresh.length - old;
  }
  return lines.join(ending);
}

/** Where a hunk belongs, with as much of its context as still stands around it. */
function place(lines: string[], hunk: Hunk, drift: number): { at: number; part: Hunk } | null {
  for (let part: Hunk | null = hunk; part !== null; part = trimmed(part)) {
    const old = part.lines.filter((line) => line.kind !== "+").map((line) => line.text);
    const at = nearest(lines, old, part.start + drift);
    if (at !== null) {
      return { at, part };
    }
  }
  return null;
}

function nearest(lines: string[], wanted: string[], around: number): number | null {
  const last = lines.length - wanted.length;
  const fits = (at: number) => at >= 0 && at <= last && wanted.every((line, index) => lines[at + index] === line);
  for (let away = 0; away <= lines.length; away++) {
    if (fits(around - away)) {
      return around - away;
    }
    if (fits(around + away)) {
      return around + away;
    }
  }
  return null;
}

/** The hunk with one line of context less at either end; null when only what changes is left. */
function trimmed(hunk: Hunk): Hunk | null {
  const head = hunk.lines[0]?.kind === " " ? 1 : 0;
  const tail = hunk.lines.at(-1)?.kind === " " ? 1 : 0;
  const lines = hunk.lines.slice(head, hunk.lines.length - tail);
  const removes = lines.some((line) => line.kind === "-");
  const anchored = removes || lines.some((line) => line.kind === " ");
  return (head || tail) && anchored ? { start: hunk.start + head, lines } : null;
}
