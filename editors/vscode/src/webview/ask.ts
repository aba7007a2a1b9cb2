/**
 * The page for tasks and questions. A text has several lines, mentions are completed while they are typed, and
 * earlier texts come back by the arrows. Answers stream in, their citations are links.
 */

import { completed, History, isAtEdge, type MentionItem, mentionAt } from "../model/composer.ts";
import type { Turn } from "../model/conversation.ts";
import { type Block, blocks, type Inline } from "../model/markdown.ts";
import { shortName } from "../model/symbol.ts";
import { button, host, make } from "./host.ts";

type Mode = "task" | "question";

interface State {
  turns: Turn[];
  busy: boolean;
  /** What a question is about; empty for the whole project. */
  symbol: string;
  /** Where a task begins; empty where Starling finds the symbols. */
  begin: string;
  /** What the user has come to write, and how that text begins. */
  mode: Mode;
  draft: string;
  /** The texts that were sent, the newest at the end. */
  history: string[];
  /** Rises when the user comes to ask. */
  come: number;
  /** Why nothing can be asked now; empty when it can. */
  unable: string;
}

const log = make("div", { id: "log", role: "log", "aria-live": "polite", "aria-label": "Questions and answers" });
const text = make("textarea", {
  id: "question",
  rows: "4",
  role: "combobox",
  "aria-autocomplete": "list",
  "aria-controls": "mentions",
  "aria-expanded": "false",
});
const list = make("ul", { id: "mentions", role: "listbox", "aria-label": "Files and symbols", hidden: "" });
const about = make("div", { id: "about", hidden: "" });
const notice = make("p", { id: "notice", role: "status" });
const send = button("Ask", { class: "primary" }, submit);
const modes: Record<Mode, HTMLButtonElement> = {
  task: button("Task", { class: "mode", id: "mode-task" }, () => become("task")),
  question: button("Question", { class: "mode", id: "mode-question" }, () => become("question")),
};
const WORDS: Record<Mode, { label: string; example: string; send: string }> = {
  task: {
    label: "Your task",
    example: "The late fee is charged on the day of return, too. See #Cart.total and @shop/fees.py.",
    send: "Start",
  },
  question: { label: "Your question", example: "Who calls #Cart.total?", send: "Ask" },
};
const stop = button("Stop", { class: "secondary" }, () => host.postMessage({ wish: "stop" }));
const anew = button("New session", { class: "quiet" }, () => host.postMessage({ wish: "new" }));

let state: State = {
  turns: [],
  busy: false,
  symbol: "",
  begin: "",
  mode: "question",
  draft: "",
  history: [],
  come: 0,
  unable: "",
};
let mode: Mode = "question";
const history = new History();
/** The mentions that are offered, and which of them Enter takes. */
let offered: MentionItem[] = [];
let taken = 0;
/** What each turn looked like when it was drawn. */
let drawn: string[] = [];

document.body.append(
  log,
  make(
    "form",
    { id: "form" },
    make("div", { class: "modes", role: "group", "aria-label": "What you write" }, modes.task, modes.question),
    about,
    make("div", { class: "field" }, list, text),
    make("div", { class: "bar" }, anew, stop, send),
  ),
  notice,
);
text.addEventListener("keydown", (event) => {
  if (!event.isComposing && press(event.key, event)) {
    event.preventDefault();
  }
});
text.addEventListener("input", look);
text.addEventListener("click", look);
text.addEventListener("blur", () => offer([]));
document.querySelector("form")?.addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("message", ({ data }: MessageEvent<State | { mention: string; items: MentionItem[] }>) => {
  if ("items" in data) {
    // What was typed since has another answer.
    if (mentionAt(text.value, text.selectionStart)?.text === data.mention) {
      offer(data.items.filter((item) => item.text !== data.mention));
    }
    return;
  }
  const begun = data.come > state.come;
  if (data.history.join("\0") !== state.history.join("\0")) {
    history.begin(data.history);
  }
  state = data;
  if (begun) {
    mode = data.mode;
    if (data.draft !== "") {
      write(data.draft, data.draft.length);
    }
  }
  draw();
  if (begun) {
    text.focus();
  }
});
host.postMessage({ wish: "ready" });

function isAble(): boolean {
  return state.unable === "" && (mode === "task" || !state.busy);
}

function submit(): void {
  const written = text.value.trim();
  if (written !== "" && isAble()) {
    text.value = "";
    offer([]);
    host.postMessage(mode === "task" ? { wish: "run", task: written } : { wish: "ask", question: written });
  }
}

function become(other: Mode): void {
  mode = other;
  draw();
  text.focus();
}

/** Whether a key was for the mentions, for the history or for sending; else the field has it. */
function press(key: string, { shiftKey, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  if (ctrlKey || metaKey || altKey) {
    return false;
  }
  if (offered.length > 0) {
    switch (key) {
      case "ArrowDown":
      case "ArrowUp":
        taken = (taken + (key === "ArrowDown" ? 1 : offered.length - 1)) % offered.length;
        drawOffered();
        return true;
      case "Enter":
      case "Tab":
        if (!shiftKey) {
          take(taken);
          return true;
        }
        break;
      case "Escape":
        offer([]);
        return true;
    }
  }
  if (key === "Enter" && !shiftKey) {
    submit();
    return true;
  }
  if ((key === "ArrowUp" || key === "ArrowDown") && !shiftKey && text.selectionStart === text.selectionEnd) {
    const by = key === "ArrowUp" ? -1 : 1;
    const other = isAtEdge(text.value, text.selectionStart, by) ? history.move(by, text.value) : undefined;
    if (other !== undefined) {
      write(other, by < 0 ? (other.split("\n")[0] ?? "").length : other.length);
      return true;
    }
  }
  return false;
}

function write(value: string, cursor: number): void {
  text.value = value;
  text.setSelectionRange(cursor, cursor);
  offer([]);
}

/** Asks for what the mention at the cursor may become. */
function look(): void {
  const mention = mentionAt(text.value, text.selectionStart);
  if (mention) {
    host.postMessage({ wish: "complete", mention: mention.text });
  } else {
    offer([]);
  }
}

function offer(items: MentionItem[]): void {
  offered = items;
  taken = 0;
  drawOffered();
}

function take(index: number): void {
  const item = offered[index];
  const mention = mentionAt(text.value, text.selectionStart);
  if (item && mention) {
    const { text: value, cursor } = completed(text.value, mention, item);
    write(value, cursor);
  }
}

function drawOffered(): void {
  const rows = offered.map((item, index) => {
    const row = make(
      "li",
      { role: "option", id: `mention-${index}`, "aria-selected": String(index === taken) },
      item.text,
      make("span", { class: "detail" }, item.detail),
    );
    // The field keeps the focus.
    row.addEventListener("mousedown", (event) => {
      event.preventDefault();
      take(index);
    });
    return row;
  });
  list.replaceChildren(...rows);
  list.hidden = rows.length === 0;
  rows[taken]?.scrollIntoView({ block: "nearest" });
  text.setAttribute("aria-expanded", String(rows.length > 0));
  text.setAttribute("aria-activedescendant", rows.length > 0 ? `mention-${taken}` : "");
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
  const words = WORDS[mode];
  send.textContent = words.send;
  send.disabled = !isAble();
  text.placeholder = words.example;
  text.setAttribute("aria-label", words.label);
  modes.task.setAttribute("aria-pressed", String(mode === "task"));
  modes.question.setAttribute("aria-pressed", String(mode === "question"));
  anew.hidden = state.turns.length === 0;
  notice.textContent = state.unable;
  const symbol = mode === "task" ? state.begin : state.symbol;
  about.hidden = symbol === "";
  const whole = mode === "task" ? "Let Starling find the symbols" : "Ask about the whole project";
  const all = button("×", { class: "quiet", "aria-label": whole }, () => host.postMessage({ wish: "about_all" }));
  about.replaceChildren(`${mode === "task" ? "Begins at" : "About"} ${shortName(symbol)}`, all);
  about.title = symbol;
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
