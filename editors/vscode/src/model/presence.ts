/** What is said to one who types where an agent is at work. */

import { fileOf, nameOf, shortName } from "./symbol.ts";

export interface Worker {
  symbol: string;
  doing: string;
}

/** Null where nobody is at work: not on the symbol, and not on what is around it. */
export function placeHint(symbol: string, workers: Worker[]): string | null {
  const holder = workers.find((one) => encloses(one.symbol, symbol));
  return holder ? `An agent is at work on ${shortName(holder.symbol)}: ${holder.doing}. What you type stays.` : null;
}

/** The module body holds only what no other symbol does. */
function encloses(outer: string, inner: string): boolean {
  const name = nameOf(outer);
  return outer === inner || (fileOf(outer) === fileOf(inner) && name !== "" && nameOf(inner).startsWith(`${name}.`));
}
