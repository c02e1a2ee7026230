"use strict";
// Tables sort by a click on a head, and show only the rows that have the text of the field above them.
function value(row, column) {
  const cell = row.cells[column];
  return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
}
function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return a.localeCompare(b, "en", { numeric: true });
}
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = table.tHead === null ? [] : [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    if (head.textContent === "" || table.tBodies[0].rows.length < 2) return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const turn = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", turn === 1 ? "ascending" : "descending");
      const body = table.tBodies[0];
      const rows = [...body.rows].map((row) => [value(row, column), row]);
      // What has no number comes last, whichever way.
      const isMissing = (cell) => cell === "" || cell === "-";
      rows.sort(([a], [b]) => isMissing(a) - isMissing(b) || turn * compare(a, b));
      body.append(...rows.map(([, row]) => row));
    });
  });
}
for (const field of document.querySelectorAll("input[data-filter]")) {
  const table = document.getElementById(field.dataset.filter);
  const count = document.getElementById(field.dataset.filter + "-count");
  field.addEventListener("input", () => {
    const wanted = field.value.trim().toLowerCase();
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
      shown += row.hidden ? 0 : 1;
    }
    count.textContent = wanted === "" ? "" : shown + " of " + table.tBodies[0].rows.length;
  });
}
