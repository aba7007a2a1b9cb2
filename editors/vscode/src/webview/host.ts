/** What a page shares with the extension, and small helpers to build pages from values. */

interface Host {
  postMessage(message: unknown): void;
  /** What the page is given again after the window was loaded anew. */
  setState(state: unknown): void;
}

declare function acquireVsCodeApi(): Host;

export const host = acquireVsCodeApi();

type Child = Node | string;

/** An element; text is text, never markup. */
export function make<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

export function button(text: string, attributes: Record<string, string>, act: () => void): HTMLButtonElement {
  const element = make("button", { type: "button", ...attributes }, text);
  element.addEventListener("click", act);
  return element;
}
