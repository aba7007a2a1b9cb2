import assert from "node:assert/strict";
import { test } from "node:test";
import { outline, type Row, testPath } from "../../src/model/outline.ts";
import { picture } from "../../src/model/picture.ts";
import { answered, asked, finished, made, PERCENT, QUOTE, requested, review, started, story, woken } from "./events.ts";

function drawn(row: Row, depth = 0): string[] {
  const own = `${"  ".repeat(depth)}${row.label} | ${row.description} | ${row.context}`;
  return [own, ...row.children.flatMap((child) => drawn(child, depth + 1))];
}

const going = () =>
  story(started, woken(QUOTE), asked, answered, requested, woken(PERCENT), made(1, QUOTE), review(1, QUOTE));

test("the tree of a run that waits", () => {
  assert.deepEqual(drawn(outline(going())), [
    "season | 1 to review · 0 calls · 0 tokens | run-going",
    "  To review | 1 | review",
    "    #1 quote | waits for you · parcels/quote.py | proposal-waiting",
    "      because |  | fact",
    "      4 passed · 1 fixed · 2 broken |  | fact",
    "      diagnostics unknown: no language server |  | fact",
    '      contract: parameter "on" added (required) |  | fact',
    "      callers to follow: a.py::f, b.py::g, c.py::h and 1 more |  | fact",
    "  Agents | 2 | agents",
    "    quote | proposal #1 waits for you · parcels/quote.py | agent-working",
    "    percent | begins · parcels/rates.py | agent-working",
    "  Questions and requests | 2 | talk",
    "    quote → percent | Round twice? | message",
    "      Round twice? |  | fact",
    "      Yes. |  | fact",
    "    quote → percent | add season | message",
    "      add season |  | fact",
  ]);
});

test("a set says with which others it is answered", () => {
  const told = story(started, woken(QUOTE), woken(PERCENT), made(1, QUOTE), made(2, PERCENT), review(1, QUOTE, [2]));
  const rows = outline(told).children[0]?.children ?? [];
  assert.deepEqual(
    rows.map(({ description }) => description),
    ["waits for you with #2 · parcels/quote.py", "waits for you with #1 · parcels/rates.py"],
  );
});

test("rows keep their ids, and no two are the same", () => {
  const told = going();
  const ids = (row: Row): string[] => [row.id, ...row.children.flatMap(ids)];
  const before = ids(outline(told));
  assert.equal(new Set(before).size, before.length);
  told.take(20, made(2, PERCENT));
  const after = ids(outline(told));
  assert.deepEqual(
    before.filter((id) => !after.includes(id)),
    [],
  );
});

test("the tree of a run that has ended begins with its end", () => {
  const told = going();
  told.take(20, finished);
  const row = outline(told);
  assert.equal(row.context, "run-ended");
  assert.equal(row.icon, "pass");
  assert.match(row.children[0]?.label ?? "", /^Settled/);
});

test("a recording says so", () => {
  const told = story({ ...started, replayed: true } as typeof started);
  assert.match(outline(told).description, /^recorded answers · /);
  assert.equal(picture(told).replayed, true);
});

test("the picture has agents by their files, and what is on its way", () => {
  const { groups, edges, you, talk } = picture(going());
  assert.deepEqual(
    groups.map(({ file, nodes }) => [
      file,
      ...nodes.map(({ name, doing, proposal }) => `${name}: ${doing} ${proposal ?? ""}`),
    ]),
    [
      ["parcels/quote.py", "quote: #1 waits for you 1"],
      ["parcels/rates.py", "percent: begins "],
    ],
  );
  assert.deepEqual(
    edges.map(({ from, to, kind, live }) => `${kind} ${from} ${to} ${live ? "live" : "still"}`),
    [`answer ${PERCENT} ${QUOTE} still`, `change ${QUOTE} ${PERCENT} live`, `proposal ${QUOTE} user live`],
  );
  assert.equal(you.doing, "1 to review");
  assert.deepEqual(
    talk.map(({ text }) => text),
    ["add season", "Round twice?"],
  );
});

test("one who is only asked has a node, too", () => {
  const { groups } = picture(story(started, woken(QUOTE), asked));
  assert.deepEqual(
    groups.map(({ file }) => file),
    ["parcels/quote.py", "parcels/rates.py"],
  );
});

test("the same two ask again: one line", () => {
  const again = { ...asked, question: 2 } as typeof asked;
  const { edges } = picture(story(started, woken(QUOTE), asked, answered, again));
  assert.deepEqual(
    edges.map(({ kind, live }) => [kind, live]),
    [["question", true]],
  );
});

test("tests by the parts of their ids", () => {
  const path = (id: string) => testPath({ id, status: "passed", message: "" });
  assert.deepEqual(path("tests/test_a.py::TestA::test_b[1-x.y]"), ["tests/test_a.py", "TestA", "test_b[1-x.y]"]);
  assert.deepEqual(path("tests.test_quote.QuoteTest.test_day"), ["tests.test_quote", "QuoteTest", "test_day"]);
  assert.deepEqual(path("tests.test_quote"), ["tests.test_quote"]);
});
