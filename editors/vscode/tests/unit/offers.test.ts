import assert from "node:assert/strict";
import { test } from "node:test";
import { byLine, link } from "../../src/model/offers.ts";

const lens = (line: number, title: string) => ({
  range: { start: { line } },
  command: { title, command: "starling.do", arguments: [{ run: "r" }] },
});

test("what is offered on a line is told by what it is about, and holds what can be done", () => {
  const lenses = [
    lens(3, "Accept"),
    lens(3, "Reject"),
    lens(3, "Starling #1: halve it"),
    lens(3, "Stop"),
    lens(3, "Starling: reads"),
    lens(9, "Starling: reads — stop the run"),
    { range: { start: { line: 9 } } },
  ];
  const told = byLine(lenses).map(({ line, offers }) => ({
    line,
    offers: offers.map(({ about, commands }) => [about, ...commands.map(({ title }) => title)]),
  }));
  assert.deepEqual(told, [
    {
      line: 3,
      offers: [
        ["Starling #1: halve it", "Accept", "Reject"],
        ["Starling: reads", "Stop"],
      ],
    },
    { line: 9, offers: [["Starling: reads — stop the run", "Starling: reads — stop the run"]] },
  ]);
  assert.deepEqual(byLine([]), []);
});

test("a link names its command, and its words are no markdown", () => {
  const command = { title: "Accept [all]", command: "starling.accept", arguments: [{ run: "a b", proposal: 1 }] };
  const expected =
    "[Accept \\[all\\]](command:starling.accept?%5B%7B%22run%22%3A%22a%20b%22%2C%22proposal%22%3A1%7D%5D)";
  assert.equal(link(command), expected);
});
