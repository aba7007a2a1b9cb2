/** A scripted model behind an endpoint: it says what a test wants, when the test wants it. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { WAIT } from "./editor.ts";

/** What an agent says: a call of one of its tools. */
export interface Said {
  tool: string;
  arguments: object;
}

/** The answers to one task, by who is asked: the scout, or an agent by its symbol; each in its order. */
export type Script = Record<string, Said[]>;

export function wakes(...symbols: string[]): Said {
  return { tool: "wake", arguments: { symbols: symbols.map((symbol) => ({ symbol, why: "the task names it" })) } };
}

/** One place of the owner's symbol is changed. */
export function proposes(reason: string, old: string, now: string): Said {
  return { tool: "propose", arguments: { reason, hunks: [{ old, new: now }] } };
}

interface Asked {
  task: string;
  who: string;
  answer: ServerResponse;
}

export class Model {
  /** Every request, as it came. */
  readonly requests: { task: string; who: string }[] = [];
  /** The key without which requests are refused (401). */
  key: string | null = null;
  /** Whether connections are cut without an answer. */
  dead = false;
  readonly #server: Server;
  readonly #scripts = new Map<string, Script>();
  readonly #held = new Set<string>();
  #waiting: Asked[] = [];

  private constructor() {
    this.#server = createServer((request, response) => void this.#take(request, response));
  }

  static async start(): Promise<Model> {
    const model = new Model();
    await new Promise<void>((resolve) => model.#server.listen(0, "127.0.0.1", resolve));
    return model;
  }

  /** Where the model is served. */
  get address(): string {
    const address = this.#server.address();
    const port = typeof address === "object" ? address?.port : "";
    return `http://127.0.0.1:${port}/v1`;
  }

  /** What is to be set of the server, so that it asks this model. */
  get settings(): Record<string, unknown> {
    return {
      "starling.model": "openai:scripted",
      "starling.environment": { OPENAI_BASE_URL: this.address, OPENAI_API_KEY: "none" },
    };
  }

  knows(task: string, script: Script): void {
    this.#scripts.set(task, script);
  }

  /** From now on one is not answered. */
  hold(who: string): void {
    this.#held.add(who);
  }

  /** Waits until one has been asked and waits for the answer. */
  async asked(who: string): Promise<void> {
    await until(`${who} is asked`, () => this.#waiting.some((one) => one.who === who && !one.answer.destroyed));
  }

  /** Waits until nobody waits for an answer any more. */
  async dropped(who: string): Promise<void> {
    await until(`${who} is given up`, () => this.#waiting.every((one) => one.who !== who || one.answer.destroyed));
  }

  letGo(who: string): void {
    this.#held.delete(who);
    const free = this.#waiting.filter((one) => one.who === who);
    this.#waiting = this.#waiting.filter((one) => one.who !== who);
    free.forEach((one) => this.#answer(one));
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) {
      pieces.push(piece as Buffer);
    }
    if (this.dead) {
      request.socket.destroy();
      return;
    }
    if (this.key !== null && request.headers.authorization !== `Bearer ${this.key}`) {
      response.statusCode = 401;
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ error: { message: "no such key" } }));
      return;
    }
    const body = JSON.parse(Buffer.concat(pieces).toString() || "{}");
    const text = (body.messages ?? []).map((one: { content: unknown }) => textOf(one.content)).join("\n");
    const task = [...this.#scripts.keys()].find((one) => text.includes(one)) ?? "";
    const tools = (body.tools ?? []).map((tool: { function: { name: string } }) => tool.function.name);
    const who = tools.includes("wake") ? "scout" : (/^Your symbol: `(.+?)`/m.exec(text)?.[1] ?? "");
    this.requests.push({ task, who });
    const asked = { task, who, answer: response };
    if (this.#held.has(who)) {
      this.#waiting.push(asked);
    } else {
      this.#answer(asked);
    }
  }

  #answer({ task, who, answer }: Asked): void {
    const said = this.#scripts.get(task)?.[who]?.shift() ?? {
      tool: "finish",
      arguments: { summary: "nothing more is known", why: "nothing more is known" },
    };
    const call = { name: said.tool, arguments: JSON.stringify(said.arguments) };
    const message = {
      role: "assistant",
      content: null,
      tool_calls: [{ id: `call${this.requests.length}`, type: "function", function: call }],
    };
    answer.setHeader("content-type", "application/json");
    answer.end(
      JSON.stringify({
        id: "1",
        object: "chat.completion",
        created: 0,
        model: "scripted",
        choices: [{ index: 0, message, finish_reason: "tool_calls" }],
        usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 },
      }),
    );
  }
}

function textOf(content: unknown): string {
  return typeof content === "string" ? content : JSON.stringify(content ?? "");
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const last = Date.now() + WAIT;
  while (!holds()) {
    if (Date.now() > last) {
      throw new Error(`waited in vain until ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
