/**
 * In the server's place: a program that asks the bridge about the file that is opened, and writes what it
 * hears. Null is heard on a slow machine, too, and before other extensions are awake: what somebody knows
 * is asked for again. Started as `node asker.ts FILE`.
 */

import { appendFileSync } from "node:fs";

const [heard] = process.argv.slice(2);

interface Message {
  id?: number;
  method?: string;
  params?: { textDocument?: { uri: string; version: number; text: string } };
  result?: unknown;
  error?: { code: number };
}

function send(message: object): void {
  const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
  process.stdout.write(`Content-Length: ${body.length}\r\n\r\n`);
  process.stdout.write(body);
}

/** What somebody knows. */
const KNOWN = ["definition", "references", "diagnostics"];

/** What is asked, by the ids of the requests. */
const asked = new Map<number, { what: string; params: object }>();

function ask(what: string, params: object): void {
  const id = asked.size + 100;
  asked.set(id, { what, params });
  send({ id, method: `starling/${what.split(" ")[0]}`, params });
}

function askAbout({ uri, version, text }: { uri: string; version: number; text: string }): void {
  const lines = text.split("\n");
  const line = lines.findIndex((one) => one.includes("tax()"));
  const position = { line, character: (lines[line] ?? "").indexOf("tax()") + 1 };
  const at = { textDocument: { uri }, version, position };
  ask("definition", at);
  ask("references", at);
  ask("implementation", at);
  ask("diagnostics", { textDocument: { uri }, version });
  ask("definition of another version", { ...at, version: version + 7 });
}

function hear(id: number, result: unknown, code: number | undefined): void {
  const { what, params } = asked.get(id) ?? { what: "", params: {} };
  if (result === null && KNOWN.includes(what)) {
    return ask(what, params);
  }
  appendFileSync(heard ?? "", `${JSON.stringify({ asked: what, result, code })}\n`);
}

function take({ id, method, params, result, error }: Message): void {
  switch (method) {
    case "initialize":
      return send({ id, result: { capabilities: { textDocumentSync: { openClose: true, change: 2 } } } });
    case "textDocument/didOpen":
      return params?.textDocument?.uri.endsWith("/bill.py") ? askAbout(params.textDocument) : undefined;
    case "shutdown":
      return send({ id, result: null });
    case "exit":
      return process.exit(0);
    case undefined:
      return hear(id ?? 0, result, error?.code);
    default:
      return id === undefined ? undefined : send({ id, result: null });
  }
}

let rest = Buffer.alloc(0);
process.stdin.on("data", (piece: Buffer) => {
  rest = Buffer.concat([rest, piece]);
  for (;;) {
    const head = rest.indexOf("\r\n\r\n");
    const length = Number(/Content-Length: (\d+)/i.exec(rest.subarray(0, Math.max(0, head)).toString())?.[1]);
    if (head < 0 || rest.length < head + 4 + length) {
      return;
    }
    take(JSON.parse(rest.subarray(head + 4, head + 4 + length).toString()));
    rest = rest.subarray(head + 4 + length);
  }
});
