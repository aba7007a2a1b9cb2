/** What the editor's own providers say, in the words of the protocol (docs/protocol.md, Bridge). */

interface Place {
  line: number;
  character: number;
}

interface Span {
  start: Place;
  end: Place;
}

/** What a provider gives: a location, or a link to one. */
export type Found =
  { uri: object; range: Span } | { targetUri: object; targetRange: Span; targetSelectionRange?: Span };

/** A location of the protocol. */
export interface Location {
  uri: string;
  range: Span;
}

/** Each place once. Null without any: the editor does not tell "nowhere" from "nobody to ask". */
export function locationsOf(found: Found[] | undefined): Location[] | null {
  const all = (found ?? []).map((one) =>
    "targetUri" in one
      ? located(one.targetUri, one.targetSelectionRange ?? one.targetRange)
      : located(one.uri, one.range),
  );
  const each = new Map(all.map((one) => [JSON.stringify(one), one]));
  return each.size === 0 ? null : [...each.values()];
}

function located(uri: object, { start, end }: Span): Location {
  const place = ({ line, character }: Place) => ({ line, character });
  return { uri: uri.toString(), range: { start: place(start), end: place(end) } };
}

/** An answer, or null when it does not come in time. */
export async function inTime<T>(answer: PromiseLike<T>, millis: number): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), millis);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** For which version of each document problems were last reported. */
export class Reports {
  readonly #versions = new Map<string, number>();
  readonly #waiting = new Set<() => void>();

  tell(uri: string, version: number): void {
    this.#versions.set(uri, version);
    [...this.#waiting].forEach((look) => look());
  }

  forget(uri: string): void {
    this.#versions.delete(uri);
  }

  /** Waits until somebody has reported on this version or a newer one. */
  reported(uri: string, version: number): Promise<true> {
    return new Promise((resolve) => {
      const look = () => {
        if ((this.#versions.get(uri) ?? -1) >= version) {
          this.#waiting.delete(look);
          resolve(true);
        }
      };
      this.#waiting.add(look);
      look();
    });
  }
}
