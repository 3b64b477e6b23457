// Tables that can be sorted by each column and copied with all digits.

import { button, copyText, el } from "./dom.js";
import { isMissing, isOutside, shown } from "./numbers.js";
import { flat, saveButtons } from "./saving.js";
import { isShown } from "./state.js";
import { explained } from "./terms.js";

function sortKey(value) {
  return Array.isArray(value) ? value[0] : value;
}

function compareCells(a, b) {
  if (isMissing(a) || isMissing(b)) return isMissing(a) - isMissing(b);
  const [x, y] = [sortKey(a), sortKey(b)];
  return typeof x === "number" && typeof y === "number"
    ? x - y
    : String(x).localeCompare(String(y), "en", { numeric: true });
}

function sorted(rows, { column, down }) {
  if (column === null) return rows;
  const order = down ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [a.cells[column], b.cells[column]];
    return isMissing(x) || isMissing(y) ? compareCells(x, y) : order * compareCells(x, y);
  });
}

function tabSeparated(columns, rows) {
  const plain = (value) => String(value).replace(/[\t\n]/g, " ");
  return flat(columns, rows)
    .map((line) => line.map(plain).join("\t"))
    .join("\n");
}

function copyButton(text) {
  const element = button(
    "Copy",
    async () => {
      await copyText(text());
      element.textContent = "Copied";
      setTimeout(() => (element.textContent = "Copy"), 1500);
    },
    { class: "quiet", title: "Copy the numbers with all digits, separated by tabs" },
  );
  return element;
}

function headerCell(column, at, sort, resort) {
  const state = sort.column !== at ? "none" : sort.down ? "descending" : "ascending";
  const numeric = column.format !== "text";
  const down = sort.column === at ? !sort.down : numeric;
  const label = button(column.name, () => resort({ column: at, down }), {
    class: "sort",
    ...(column.name ? explained(column.name) : { "aria-label": "name" }),
  });
  return el("th", { scope: "col", "aria-sort": state, class: numeric ? "number" : "" }, label);
}

function cellContent(value, format) {
  if (format !== "estimate" || isMissing(value)) return shown(value, format);
  const [mean, low, high] = value;
  const outside = isOutside(value) ? ", value outside" : "";
  return [shown(mean, "number"), " ", el("small", {}, shown([low, high], "interval") + outside)];
}

function bodyRow(columns, row) {
  const cells = columns.map((column, at) => {
    const numeric = column.format !== "text";
    const attributes = { class: numeric ? `number ${column.format}` : "", scope: at === 0 ? "row" : null };
    return el(at === 0 ? "th" : "td", attributes, cellContent(row.cells[at], column.format));
  });
  return el("tr", {}, cells);
}

// A table of a block {columns, rows, about}; rows about hidden recommenders are left out.
export function tableView(firstBlock, firstLabel) {
  let block = firstBlock;
  let label = firstLabel;
  const rows = () => block.rows.map((cells, at) => ({ cells, about: block.about?.[at] ?? [] }));
  const visible = () => rows().filter((row) => isShown(row.about));
  const holder = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${label}, table` });
  let sort = { column: null, down: false };
  const draw = () => {
    const focused = holder.contains(document.activeElement) && document.activeElement.closest("th")?.cellIndex;
    const resort = (next) => {
      sort = next;
      draw();
    };
    const head = block.columns.map((column, at) => headerCell(column, at, sort, resort));
    const body = sorted(visible(), sort).map((row) => bodyRow(block.columns, row));
    holder.replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
    if (Number.isInteger(focused)) holder.querySelectorAll("thead button")[focused]?.focus();
  };
  draw();
  const cells = () => sorted(visible(), sort).map((row) => row.cells);
  const copy = copyButton(() => tabSeparated(block.columns, cells()));
  const saves = saveButtons(
    () => label,
    () => ({ columns: block.columns, rows: cells() }),
  );
  const table = el("div", { class: "table" }, holder, el("div", { class: "tools" }, copy, saves));
  table.update = (next, nextLabel = label) => {
    [block, label] = [next, nextLabel];
    holder.setAttribute("aria-label", `${label}, table`);
    draw();
  };
  return table;
}
