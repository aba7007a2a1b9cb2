/** What the server offers on symbols, gathered by the lines where it is shown. */

/** A lens as the server sends it. */
export interface Lens {
  range: { start: { line: number } };
  command?: OfferCommand | undefined;
}

export interface OfferCommand {
  title: string;
  command: string;
  arguments?: unknown[];
}

/** Everything that is offered on one line, counted from 0. */
export interface OfferedLine {
  line: number;
  /** What it is about, and what can be done. */
  offers: { about: string; commands: OfferCommand[] }[];
}

/** The last lens of each offer says what it is about. */
const ABOUT = /^Starling\b/;

export function byLine(lenses: Lens[]): OfferedLine[] {
  const lines = new Map<number, OfferCommand[]>();
  for (const { range, command } of lenses) {
    if (command) {
      lines.set(range.start.line, [...(lines.get(range.start.line) ?? []), command]);
    }
  }
  return [...lines].map(([line, commands]) => ({ line, offers: grouped(commands) }));
}

function grouped(commands: OfferCommand[]): OfferedLine["offers"] {
  const offers: OfferedLine["offers"] = [];
  let open: OfferCommand[] = [];
  for (const command of commands) {
    if (!ABOUT.test(command.title)) {
      open.push(command);
      continue;
    }
    // One that stands alone is what can be done as well.
    offers.push({ about: command.title, commands: open.length > 0 ? open : [command] });
    open = [];
  }
  return open.length > 0 ? [...offers, { about: "Starling", commands: open }] : offers;
}

/** A link of a hover that runs a command. */
export function link({ title, command, arguments: given = [] }: OfferCommand): string {
  const text = title.replace(/[\\[\]`*_<>]/g, "\\$&");
  return `[${text}](command:${command}?${encodeURIComponent(JSON.stringify(given))})`;
}
