/** The Markdown of answers as values, so that a view builds it without ever reading text as HTML. */

export type Inline =
  | { kind: "text" | "code" | "strong" | "emphasis"; text: string }
  | { kind: "place"; text: string; path: string; line: number };

export type Block =
  | { kind: "paragraph"; inlines: Inline[] }
  | { kind: "heading"; inlines: Inline[] }
  | { kind: "list"; items: Inline[][] }
  | { kind: "code"; text: string };

const ITEM = /^\s*(?:[-*+]|\d+[.)])\s+/;

export function blocks(text: string): Block[] {
  const found: Block[] = [];
  const lines = text.split(/\r?\n/);
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!;
    if (line.trim() === "") {
      continue;
    }
    if (line.trimStart().startsWith("```")) {
      const end = lines.findIndex((other, index) => index > at && other.trimStart().startsWith("```"));
      const last = end < 0 ? lines.length : end;
      found.push({ kind: "code", text: lines.slice(at + 1, last).join("\n") });
      at = last;
      continue;
    }
    const head = /^#{1,6}\s+(.*)/.exec(line);
    if (head) {
      found.push({ kind: "heading", inlines: inlines(head[1]!) });
      continue;
    }
    if (ITEM.test(line)) {
      at = readItems(lines, at, found);
      continue;
    }
    at = readParagraph(lines, at, found);
  }
  return found;
}

function readItems(lines: string[], from: number, found: Block[]): number {
  const items: string[] = [];
  let at = from;
  for (; at < lines.length && lines[at]!.trim() !== ""; at++) {
    const line = lines[at]!;
    if (ITEM.test(line)) {
      items.push(line.replace(ITEM, ""));
    } else {
      items.push(`${items.pop() ?? ""} ${line.trim()}`);
    }
  }
  found.push({ kind: "list", items: items.map(inlines) });
  return at - 1;
}

function readParagraph(lines: string[], from: number, found: Block[]): number {
  let at = from;
  const ends = (line: string) => line.trim() === "" || line.trimStart().startsWith("```") || ITEM.test(line);
  while (at + 1 < lines.length && !ends(lines[at + 1]!)) {
    at++;
  }
  const text = lines.slice(from, at + 1).map((line) => line.trim());
  found.push({ kind: "paragraph", inlines: inlines(text.join(" ")) });
  return at;
}

/** `path:line` or `path:first-last`; the path has a dot in its last part. */
const PLACE = /((?:[\w.@+-]+\/)*[\w@+-][\w.@+-]*\.\w+):(\d+)(?:-\d+)?/;
const SPAN = new RegExp(`(\`[^\`]+\`)|(\\*\\*[^*]+\\*\\*)|(\\*[^*\\s][^*]*\\*)|${PLACE.source}`, "g");

export function inlines(text: string): Inline[] {
  const found: Inline[] = [];
  let last = 0;
  for (const match of text.matchAll(SPAN)) {
    if (match.index > last) {
      found.push({ kind: "text", text: text.slice(last, match.index) });
    }
    found.push(inline(match));
    last = match.index + match[0].length;
  }
  if (last < text.length) {
    found.push({ kind: "text", text: text.slice(last) });
  }
  return found;
}

function inline(match: RegExpExecArray): Inline {
  const [whole, code, strong, emphasis, path, line] = match;
  if (code) {
    const inner = code.slice(1, -1);
    const place = new RegExp(`^${PLACE.source}$`).exec(inner);
    return place
      ? { kind: "place", text: inner, path: place[1]!, line: Number(place[2]) }
      : { kind: "code", text: inner };
  }
  if (strong) {
    return { kind: "strong", text: strong.slice(2, -2) };
  }
  if (emphasis) {
    return { kind: "emphasis", text: emphasis.slice(1, -1) };
  }
  return { kind: "place", text: whole, path: path!, line: Number(line) };
}
