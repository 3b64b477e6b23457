// Figures and tables as files: SVG that stands alone, CSV and LaTeX with all digits.

import { button, el } from "./dom.js";
import { isMissing } from "./numbers.js";

// What columns that hold several numbers become: a column for each.
const PARTS = { interval: ["low", "high"], estimate: ["", "low", "high"] };
const COLOUR = /var\((--[\w-]+)\)/g;
const LATEX = { "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "−": "$-$" };

// The cells of a table {columns, rows}, the header first: numbers with all digits, texts, and "" for what is missing.
export function flat(columns, rows) {
  const header = columns.flatMap(({ name, format }) => (PARTS[format] ?? [""]).map((part) => `${name} ${part}`.trim()));
  const cells = (row) =>
    columns.flatMap(({ format }, at) => {
      const value = row[at];
      if (PARTS[format]) return PARTS[format].map((_, part) => value?.[part] ?? "");
      return [isMissing(value) ? "" : value];
    });
  return [header, ...rows.map(cells)];
}

// A text that begins as a formula would is quoted, so that a spreadsheet shows it as it is.
function csvCell(value) {
  const text = typeof value === "string" && /^[=+@\t\r-]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csv = (lines) => lines.map((line) => `${line.map(csvCell).join(",")}\r\n`).join("");

const latexCell = (value) => String(value).replace(/[\\~^−]|[&%$#_{}]/g, (letter) => LATEX[letter] ?? `\\${letter}`);

export function latex([header, ...lines], columns) {
  const kinds = columns.flatMap(({ format }) => (PARTS[format] ?? [""]).map(() => (format === "text" ? "l" : "r")));
  const row = (line) => `${line.map(latexCell).join(" & ")} \\\\`;
  return [
    `\\begin{tabular}{${kinds.join("")}}`,
    "\\toprule",
    row(header),
    "\\midrule",
    ...lines.map(row),
    "\\bottomrule",
    "\\end{tabular}",
    "",
  ].join("\n");
}

// A chart with its colours and fonts written out, on the paper of the page.
export function svgText(plot, title) {
  const style = getComputedStyle(plot);
  const resolved = (text) => text.replace(COLOUR, (_, name) => style.getPropertyValue(name).trim());
  const copy = plot.cloneNode(true);
  for (const gone of copy.querySelectorAll(".cursor, style")) gone.remove();
  for (const part of copy.querySelectorAll("*"))
    for (const { name, value } of [...part.attributes]) part.setAttribute(name, resolved(value));
  for (const part of copy.querySelectorAll("[data-part$='grid']"))
    part.setAttribute("stroke", resolved("var(--faint)"));
  const [width, height] = ["width", "height"].map((side) => copy.getAttribute(side));
  const paper = d3
    .create("svg:rect")
    .attr("width", width)
    .attr("height", height)
    .attr("fill", resolved("var(--paper)"));
  const name = d3.create("svg:title").text(title);
  copy.prepend(name.node(), paper.node());
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.removeAttribute("style");
  const fonts = { color: style.color, fill: style.color, "font-family": style.fontFamily, "font-size": "12" };
  for (const [attribute, value] of Object.entries(fonts)) copy.setAttribute(attribute, value);
  return new XMLSerializer().serializeToString(copy);
}

const fileName = (label) =>
  label
    .normalize("NFKD")
    .replace(/[^\w.@-]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 80) || "figure";

function download(text, type, name) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// Buttons that save; `label` names the files, `table` returns {columns, rows} and `plot`, if given, the chart.
export function saveButtons(label, table, plot = null) {
  const save = (ending, type, text) =>
    button(
      ending === "tex" ? "LaTeX" : ending.toUpperCase(),
      () => download(text(), type, `${fileName(label())}.${ending}`),
      {
        class: "quiet",
        title: `Save as a file: .${ending}`,
      },
    );
  const lines = () => flat(table().columns, table().rows);
  return [
    plot ? save("svg", "image/svg+xml", () => svgText(plot(), label())) : null,
    save("csv", "text/csv", () => csv(lines())),
    save("tex", "text/x-tex", () => latex(lines(), table().columns)),
  ];
}
