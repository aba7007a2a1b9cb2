/** What is offered when a run ended because its model could not be asked. */

import type { Remedy } from "./protocol.ts";

export const KEY = "Set API Key";
export const CHOOSE = "Choose a Model";
export const AGAIN = "Try Again";

/** The buttons, the most likely remedy first. */
export function buttons(remedy: Remedy): string[] {
  switch (remedy.remedy) {
    case "download":
      return [downloadButton(remedy.bytes), CHOOSE, KEY];
    case "key":
      return [KEY, CHOOSE, AGAIN];
    case "endpoint":
      return [AGAIN, CHOOSE, KEY];
    case "model":
      return [CHOOSE, KEY];
  }
}

/** `Download (1.1 GB)` */
export function downloadButton(bytes: number): string {
  return `Download (${(bytes / 1e9).toFixed(1)} GB)`;
}

/** `downloading the model: 12 %` */
export function downloadPhase(bytes: number, total: number): string {
  const share = total > 0 ? Math.floor((100 * bytes) / total) : 0;
  return `downloading the model: ${share} %`;
}
