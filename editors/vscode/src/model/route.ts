/** Which folder of a window something is about: each has a server of its own, with runs and questions of its own. */

/** A command of the editor, as lenses and actions carry it. */
export interface Offered {
  title: string;
  command: string;
  arguments?: unknown[];
}

/** The folder that a command names. */
export interface Placed {
  folder?: string;
}

/** The command with the folder that it is of. */
export function placed<C extends Offered>(command: C | undefined, folder: string): C | undefined {
  const [about, ...more] = command?.arguments ?? [];
  return command && { ...command, arguments: [{ ...(about as object), folder }, ...more] };
}

/** Remembers in which folder each run and each question is. */
export class Homes {
  readonly #folders = new Map<string, string>();

  /** Learns from what a server says, or has answered. */
  learn(said: unknown, folder: string): void {
    for (const id of idsOf(said)) {
      this.#folders.set(id, folder);
    }
  }

  /** By its own word, else by what it is about; of several folders none is guessed. */
  find(about: object | undefined, folders: string[]): string | undefined {
    const named = (about as Placed | undefined)?.folder ?? idsOf(about).map((id) => this.#folders.get(id))[0];
    return named ?? (folders.length === 1 ? folders[0] : undefined);
  }

  of(id: string): string | undefined {
    return this.#folders.get(id);
  }
}

function idsOf(said: unknown): string[] {
  if (typeof said !== "object" || said === null) {
    return [];
  }
  const { run, ask } = said as { run?: unknown; ask?: unknown };
  return [run, ask].filter((id) => typeof id === "string");
}

/** What a server takes: it knows no folders but its own. */
export function bare<T extends object>(about: T): Omit<T, "folder"> {
  const { folder: _, ...rest } = about as T & Placed;
  return rest;
}
