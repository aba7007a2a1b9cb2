/** Writing a task or a question: mentions under the cursor, and the texts that were sent before. */

/** A mention that is being typed. */
export interface Mention {
  /** The mention with its mark: `@car`, `#Cart.t`. */
  text: string;
  /** Where its mark stands. */
  start: number;
}

/** A mention that the server offers. */
export interface MentionItem {
  text: string;
  /** Where a symbol is defined; empty for a file. */
  detail: string;
}

/** The mention that ends at the cursor; undefined where there is none. */
export function mentionAt(text: string, cursor: number): Mention | undefined {
  const found = /(?:^|[\s("'`\[])([@#][\w./:-]*)$/.exec(text.slice(0, cursor));
  const mention = found?.[1];
  return mention === undefined ? undefined : { text: mention, start: cursor - mention.length };
}

/** The text with the mention replaced by an item, and the cursor behind it. */
export function completed(text: string, mention: Mention, item: MentionItem): { text: string; cursor: number } {
  const rest = text.slice(mention.start + mention.text.length);
  const space = /^\s/.test(rest) ? "" : " ";
  const before = text.slice(0, mention.start) + item.text;
  return { text: before + space + rest, cursor: before.length + 1 };
}

/** How many texts are kept. */
const KEPT = 50;

/** The texts with one more, the newest at the end; a text that is sent again is kept once. */
export function remembered(texts: readonly string[], text: string): string[] {
  return [...texts.filter((known) => known !== text), text].slice(-KEPT);
}

/** Goes through earlier texts; what is being written is kept meanwhile. */
export class History {
  #texts: readonly string[] = [];
  #at = 0;
  #draft = "";

  /** Begins anew, behind the newest of these. */
  begin(texts: readonly string[]): void {
    this.#texts = texts;
    this.#at = texts.length;
  }

  /** The text before (-1) or after (1) the shown one; undefined at the ends. */
  move(by: -1 | 1, shown: string): string | undefined {
    const to = this.#at + by;
    if (to < 0 || to > this.#texts.length) {
      return undefined;
    }
    if (this.#at === this.#texts.length) {
      this.#draft = shown;
    }
    this.#at = to;
    return this.#texts[to] ?? this.#draft;
  }
}

/** Whether the cursor stands on the first line, or for 1 on the last. */
export function isAtEdge(text: string, cursor: number, by: -1 | 1): boolean {
  return !(by < 0 ? text.slice(0, cursor) : text.slice(cursor)).includes("\n");
}
