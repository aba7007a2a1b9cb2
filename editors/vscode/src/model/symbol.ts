/** Symbol paths: `path/to/file.py::Class.method`; the module body is `path/to/file.py::`. */

import type { Party } from "./protocol.ts";

export function fileOf(symbol: string): string {
  const cut = symbol.indexOf("::");
  return cut < 0 ? symbol : symbol.slice(0, cut);
}

export function nameOf(symbol: string): string {
  const cut = symbol.indexOf("::");
  return cut < 0 ? "" : symbol.slice(cut + 2);
}

/** The name as a person reads it: the file's own name for its module body. */
export function shortName(symbol: string): string {
  return nameOf(symbol) || (fileOf(symbol).split("/").pop() ?? symbol);
}

/** One text for each party, usable as a key. */
export function partyKey(party: Party): string {
  return typeof party === "string" ? party : party.agent;
}

export function isAgent(key: string): boolean {
  return key.includes("::");
}

/** A party by its key, as a person reads it. */
export function partyName(key: string): string {
  if (isAgent(key)) {
    return shortName(key);
  }
  const names: Record<string, string> = {
    user: "You",
    scout: "Scout",
    proxy: "Proxy user",
    starling: "Starling",
    solo: "Agent",
  };
  return names[key] ?? key;
}
