/** The page that shows a run: agents as nodes by their files, what passes between them as moving lines. */

import type { Line, Node as Shown, Picture } from "../model/picture.ts";
import { drawEdges } from "./edges.ts";
import { button, host, make } from "./host.ts";

const title = make("h1", { id: "task" });
const status = make("p", { id: "status", role: "status", "aria-live": "polite" });
const ledger = make("progress", { max: "1", value: "0", "aria-label": "Share of the limits that is spent" });
const stop = button("Stop run", { class: "secondary" }, () => host.postMessage({ wish: "stop" }));
const lines = document.createElementNS("http://www.w3.org/2000/svg", "svg");
lines.setAttribute("aria-hidden", "true");
const stage = make("div", { id: "stage" });
const field = make("div", { id: "field" }, lines, stage);
const talk = make("ol", { id: "talk", "aria-label": "Questions and requests, newest first" });
const empty = make("p", { id: "empty" }, "No run yet. Give Starling a task, and its agents appear here.");

const KINDS = {
  question: "question",
  answer: "answer",
  change: "change request",
  follow: "follow-up",
  proposal: "proposal",
};
const legend = make(
  "ul",
  { id: "legend", "aria-label": "What the colours of the lines mean" },
  ...Object.entries(KINDS).map(([kind, name]) => make("li", { class: kind }, make("span", {}, name))),
);

let shown: Picture | null = null;
/** What is on the page already: it is built anew only when it changes. */
let built = "";

document.body.append(
  make("header", {}, title, make("div", { class: "bar" }, status, stop), ledger),
  empty,
  make(
    "main",
    {},
    make("div", {}, field, legend),
    make("section", { "aria-label": "Talk" }, make("h2", {}, "Talk"), talk),
  ),
);

window.addEventListener("message", ({ data }: MessageEvent<Picture | null>) => {
  shown = data;
  if (data) {
    host.setState({ run: data.run });
  }
  draw();
});
new ResizeObserver(() => drawLines()).observe(field);
host.postMessage({ wish: "ready" });

function draw(): void {
  document.body.classList.toggle("nothing", shown === null);
  if (!shown) {
    return;
  }
  title.textContent = shown.task || "Opening the project";
  title.title = shown.task;
  const said = shown.ended ? `${shown.ended} ${shown.ledger}` : shown.status;
  const text = shown.replayed ? `${said} · recorded answers` : said;
  if (status.textContent !== text) {
    status.textContent = text;
    status.title = shown.ledgerParts.join("\n");
  }
  ledger.value = shown.share;
  ledger.title = shown.ledgerParts.join(", ");
  stop.hidden = !shown.running;
  const now = JSON.stringify([shown.you, shown.groups, shown.talk]);
  if (now !== built) {
    built = now;
    build(shown);
  }
  drawLines();
}

function build({ you, groups, talk: said }: Picture): void {
  const focused = document.activeElement?.getAttribute("data-key");
  const boxes = groups.map(({ file, nodes }) => {
    const name = file || "around the agents";
    return make("section", { class: "file", "aria-label": name }, make("h2", {}, name), ...nodes.map(box));
  });
  stage.replaceChildren(make("div", { class: "person" }, box(you)), make("div", { class: "files" }, ...boxes));
  talk.replaceChildren(...said.map(line));
  if (focused) {
    document.querySelector<HTMLElement>(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }
}

function box(node: Shown): HTMLElement {
  const wish =
    node.proposal === undefined ? { wish: "open", symbol: node.key } : { wish: "review", proposal: node.proposal };
  const action = node.proposal === undefined ? "Opens the symbol." : "Opens the diff.";
  const attributes = {
    class: `node ${node.state}`,
    "data-key": node.key,
    "aria-label": node.key === "user" ? node.label : `${node.label} ${action}`,
    title: node.label,
  };
  const inside = [make("span", { class: "name" }, node.name), make("span", { class: "doing" }, node.doing)];
  if (node.key === "user") {
    return make("div", attributes, ...inside);
  }
  const element = button("", attributes, () => host.postMessage(wish));
  element.append(...inside);
  return element;
}

function line({ who, kind, text, answer }: Line): HTMLElement {
  const item = make("li", { class: kind }, make("b", {}, who), make("p", {}, text));
  if (answer !== undefined) {
    item.append(make("p", { class: "answer" }, answer));
  }
  return item;
}

function drawLines(): void {
  if (!shown) {
    return;
  }
  const origin = field.getBoundingClientRect();
  const boxes = new Map(
    [...field.querySelectorAll(".node")].map((node) => {
      const { x, y, width, height } = node.getBoundingClientRect();
      return [node.getAttribute("data-key") ?? "", { x: x - origin.x, y: y - origin.y, width, height }];
    }),
  );
  lines.setAttribute("viewBox", `0 0 ${origin.width} ${origin.height}`);
  drawEdges(lines, shown.edges, boxes);
}
