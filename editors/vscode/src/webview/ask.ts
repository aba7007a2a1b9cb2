/** The page for questions: answers stream in, their citations are links. */

import type { Turn } from "../model/conversation.ts";
import { type Block, blocks, type Inline } from "../model/markdown.ts";
import { shortName } from "../model/symbol.ts";
import { button, host, make } from "./host.ts";

interface State {
  turns: Turn[];
  busy: boolean;
  symbol: string;
  /** Rises when the user comes to ask. */
  come: number;
  /** Why nothing can be asked now; empty when it can. */
  unable: string;
}

const log = make("div", { id: "log", role: "log", "aria-live": "polite", "aria-label": "Questions and answers" });
const text = make("textarea", { id: "question", rows: "3", "aria-label": "Your question" });
const about = make("div", { id: "about", hidden: "" });
const notice = make("p", { id: "notice", role: "status" });
const send = button("Ask", { class: "primary" }, ask);
const stop = button("Stop", { class: "secondary" }, () => host.postMessage({ wish: "stop" }));
const anew = button("New session", { class: "quiet" }, () => host.postMessage({ wish: "new" }));

let state: State = { turns: [], busy: false, symbol: "", come: 0, unable: "" };
/** What each turn looked like when it was drawn. */
let drawn: string[] = [];

document.body.append(
  log,
  make("form", { id: "form" }, about, text, make("div", { class: "bar" }, anew, stop, send)),
  notice,
);
text.placeholder = "Who calls Cart.total?";
text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    ask();
  }
});
document.querySelector("form")?.addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("message", ({ data }: MessageEvent<State>) => {
  const begun = data.come > state.come;
  state = data;
  draw();
  if (begun) {
    text.focus();
  }
});
host.postMessage({ wish: "ready" });

function ask(): void {
  const question = text.value.trim();
  if (question !== "" && !state.busy && state.unable === "") {
    text.value = "";
    host.postMessage({ wish: "ask", question });
  }
}

function draw(): void {
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  const now = state.turns.map((turn) => JSON.stringify(turn));
  now.forEach((turn, index) => {
    const known = state.turns[index];
    if (known && drawn[index] !== turn) {
      const element = turnElement(known);
      const old = log.children[index];
      old ? old.replaceWith(element) : log.append(element);
    }
  });
  while (log.children.length > now.length) {
    log.lastElementChild?.remove();
  }
  drawn = now;
  if (atEnd) {
    log.scrollTop = log.scrollHeight;
  }
  stop.hidden = !state.busy;
  send.disabled = state.busy || state.unable !== "";
  anew.hidden = state.turns.length === 0;
  notice.textContent = state.unable;
  about.hidden = state.symbol === "";
  const all = button("×", { class: "quiet", "aria-label": "Ask about the whole project" }, () =>
    host.postMessage({ wish: "about_all" }),
  );
  about.replaceChildren(`About ${shortName(state.symbol)}`, all);
  about.title = state.symbol;
}

function turnElement(turn: Turn): HTMLElement {
  const subject = turn.symbol ? ` (${shortName(turn.symbol)})` : "";
  const question = make("div", { class: "question" }, turn.question + subject);
  const answer = make("div", { class: `answer ${turn.state}` }, ...blocks(turn.text).map(block));
  if (turn.state === "asking") {
    answer.append(make("p", { class: "step" }, turn.steps.at(-1) ?? "reads the code"));
  } else if (turn.steps.length > 0) {
    const steps = turn.steps.map((step) => make("li", {}, step));
    answer.append(make("details", {}, make("summary", {}, `${steps.length} steps`), make("ul", {}, ...steps)));
  }
  if (turn.foot) {
    answer.append(make("p", { class: "foot" }, turn.foot));
  }
  if (turn.state !== "asking") {
    const task = turn.symbol ? `${turn.symbol}: ${turn.question}` : turn.question;
    answer.append(button("Make it a task…", { class: "quiet" }, () => host.postMessage({ wish: "task", text: task })));
  }
  return make("article", {}, question, answer);
}

function block(one: Block): HTMLElement {
  switch (one.kind) {
    case "paragraph":
      return make("p", {}, ...one.inlines.map(inline));
    case "heading":
      return make("h3", {}, ...one.inlines.map(inline));
    case "list":
      return make("ul", {}, ...one.items.map((item) => make("li", {}, ...item.map(inline))));
    case "code":
      return make("pre", { tabindex: "0" }, make("code", {}, one.text));
  }
}

function inline(one: Inline): Node | string {
  switch (one.kind) {
    case "text":
      return one.text;
    case "code":
      return make("code", {}, one.text);
    case "strong":
      return make("strong", {}, one.text);
    case "emphasis":
      return make("em", {}, one.text);
    case "place": {
      const { path, line } = one;
      const link = make("a", { href: "#", title: `Open ${path} at line ${line}` }, one.text);
      link.addEventListener("click", (event) => {
        event.preventDefault();
        host.postMessage({ wish: "open", path, line });
      });
      return link;
    }
  }
}
