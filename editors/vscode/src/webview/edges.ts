/** The lines between the nodes of a picture, drawn over the page where the nodes stand. */

import type { Edge } from "../model/picture.ts";

const SVG = "http://www.w3.org/2000/svg";

function svg(name: string, attributes: Record<string, string>): SVGElement {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, value);
  }
  return element;
}

interface Point {
  x: number;
  y: number;
}

interface Box extends Point {
  width: number;
  height: number;
}

const KINDS: Edge["kind"][] = ["question", "answer", "change", "follow", "proposal"];

/** Draws all edges between the given boxes on a surface of that size. */
export function drawEdges(surface: SVGElement, edges: Edge[], boxes: Map<string, Box>): void {
  const arrows = svg("defs", {});
  for (const kind of KINDS) {
    const shape = {
      id: `arrow-${kind}`,
      viewBox: "0 0 8 8",
      refX: "7",
      refY: "4",
      markerWidth: "8",
      markerHeight: "8",
      orient: "auto",
    };
    const marker = svg("marker", shape);
    marker.append(svg("path", { d: "M0 0 L8 4 L0 8 z", class: `head ${kind}` }));
    arrows.append(marker);
  }
  const lanes: Lanes = { left: 0, right: 0 };
  const drawn = edges.flatMap((edge, index) => {
    const from = boxes.get(edge.from);
    const to = boxes.get(edge.to);
    if (!from || !to || edge.from === edge.to) {
      return [];
    }
    const between = [...boxes].filter(([key]) => key !== edge.from && key !== edge.to).map(([, box]) => box);
    const side = edge.kind === "follow" ? "left" : "right";
    return [drawEdge(edge, curve(from, to, between, index, side, lanes))];
  });
  surface.replaceChildren(arrows, ...drawn);
}

/** How many lines lead along either side already. */
type Lanes = Record<"left" | "right", number>;

interface Curve {
  d: string;
  /** Where the label stands; none where many lines lie side by side. */
  middle: Point | null;
}

function drawEdge(edge: Edge, path: Curve): SVGElement {
  const group = svg("g", { class: `edge ${edge.kind} ${edge.live ? "live" : "still"}` });
  const line = svg("path", { d: path.d, class: "line", "marker-end": `url(#arrow-${edge.kind})` });
  group.append(line);
  if (edge.live) {
    const dot = svg("circle", { r: "4", class: "dot" });
    const motion = svg("animateMotion", { dur: "1.6s", repeatCount: "indefinite", path: path.d });
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) {
      dot.append(motion);
      group.append(dot);
    }
    if (path.middle) {
      const label = svg("text", { x: `${path.middle.x}`, y: `${path.middle.y - 5}`, class: "label" });
      label.textContent = edge.label;
      group.append(label);
    }
  }
  return group;
}

/** From the rim of one box to that of the other, bent so that lines lie apart; around what stands between. */
function curve(from: Box, to: Box, others: Box[], index: number, side: keyof Lanes, lanes: Lanes): Curve {
  const [a, b] = [centre(from), centre(to)];
  const between = others.filter((box) => crosses(a, b, box));
  if (between.length > 0) {
    return around(from, to, between, side, lanes[side]++);
  }
  const distance = Math.hypot(b.x - a.x, b.y - a.y) || 1;
  const bend = Math.min(44, distance / 4) + (index % 3) * 6;
  const normal = { x: -(b.y - a.y) / distance, y: (b.x - a.x) / distance };
  const middle = { x: (a.x + b.x) / 2 + normal.x * bend, y: (a.y + b.y) / 2 + normal.y * bend };
  return quadratic(rim(from, middle), middle, rim(to, middle));
}

/** Along one side of what stands between, in a lane of its own. */
function around(from: Box, to: Box, between: Box[], side: keyof Lanes, lane: number): Curve {
  const edge = ({ x, width }: Box) => (side === "left" ? x : x + width);
  const edges = [from, to, ...between].map(edge);
  const away = 22 + (lane % 6) * 5;
  const out = side === "left" ? Math.min(...edges) - away : Math.max(...edges) + away;
  const start = { x: edge(from), y: from.y + from.height / 2 };
  const end = { x: edge(to), y: to.y + to.height / 2 };
  const half = (start.y + end.y) / 2;
  const d = `M${start.x} ${start.y} C${out} ${start.y} ${out} ${start.y} ${out} ${half} S${out} ${end.y} ${end.x} ${end.y}`;
  return { d, middle: null };
}

function quadratic(start: Point, control: Point, end: Point): Curve {
  const middle = { x: (start.x + 2 * control.x + end.x) / 4, y: (start.y + 2 * control.y + end.y) / 4 };
  return { d: `M${start.x} ${start.y} Q${control.x} ${control.y} ${end.x} ${end.y}`, middle };
}

/** Whether the straight line between two points leads through a box. */
function crosses(a: Point, b: Point, box: Box): boolean {
  let [enter, leave] = [0, 1];
  const sides: [number, number, number, number][] = [
    [a.x, b.x - a.x, box.x, box.x + box.width],
    [a.y, b.y - a.y, box.y, box.y + box.height],
  ];
  for (const [start, step, low, high] of sides) {
    if (step === 0 && (start < low || start > high)) {
      return false;
    }
    if (step !== 0) {
      const [first, last] = [(low - start) / step, (high - start) / step].sort((one, other) => one - other) as [
        number,
        number,
      ];
      enter = Math.max(enter, first);
      leave = Math.min(leave, last);
    }
  }
  return enter < leave;
}

function centre({ x, y, width, height }: Box): Point {
  return { x: x + width / 2, y: y + height / 2 };
}

/** Where the line from the centre of a box to a point leaves the box. */
function rim(box: Box, towards: Point): Point {
  const { x, y } = centre(box);
  const dx = towards.x - x;
  const dy = towards.y - y;
  const scale = Math.min(box.width / 2 / Math.abs(dx || 1e-9), box.height / 2 / Math.abs(dy || 1e-9), 1);
  return { x: Math.round(x + dx * scale), y: Math.round(y + dy * scale) };
}
