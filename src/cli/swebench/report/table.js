const table = document.getElementById("instances");
const body = table.tBodies[0];
const rows = [...body.rows];
const heads = [...table.tHead.rows[0].cells];
const words = rows.map((row) => row.textContent.toLowerCase());
const value = (row, at) => row.cells[at].textContent;
heads.forEach((head, at) => {
  head.firstElementChild.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const order = (a, b) => value(a, at).localeCompare(value(b, at), "en", { numeric: true });
    body.append(...[...rows].sort((a, b) => (down ? order(b, a) : order(a, b))));
  });
});
const filter = document.getElementById("filter");
filter.addEventListener("input", () => {
  const wanted = filter.value.toLowerCase().split(/\s+/);
  let shown = 0;
  rows.forEach((row, at) => {
    row.hidden = !wanted.every((word) => words[at].includes(word));
    shown += row.hidden ? 0 : 1;
  });
  document.getElementById("shown").textContent = `${shown} of ${rows.length}`;
});
