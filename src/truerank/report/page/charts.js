// Charts of blocks, drawn by Plot. Each kind has a file, in which it says what is drawn, where the cursor can stop and
// what it reads there, how to read it, and the numbers as a table.

import { bars } from "./bars.js";
import { cursor } from "./cursor.js";
import { DATA, el, toggle } from "./dom.js";
import { dots } from "./dots.js";
import { lines } from "./lines.js";
import { swatch } from "./looks.js";
import { matrix } from "./matrix.js";
import { panels } from "./panels.js";
import { saveButtons } from "./saving.js";
import { shares } from "./shares.js";
import { chosen, isShown, widthOf, writeAddress } from "./state.js";
import { tableView } from "./tables.js";

const CHARTS = { bars, dots, lines, matrix, panels, shares };
const MOST_MARKS = 12;

// The switches of a chart: how its axes are scaled, and whether it shows differences. Those that are not as the chart
// begins are part of the address, under the name of the chart.
function switches(block, name, redraw) {
  const begin = { x: block.x?.log ?? false, y: block.y?.log ?? false, differences: Boolean(block.baseline) };
  const state = () =>
    Object.fromEntries(Object.keys(begin).map((key) => [key, chosen.scales.get(`${name}.${key}`) ?? begin[key]]));
  const set = (key, on) => {
    if (on === begin[key]) chosen.scales.delete(`${name}.${key}`);
    else chosen.scales.set(`${name}.${key}`, on);
    writeAddress();
    redraw();
  };
  const make = (key, label) => toggle(label, state()[key], (on) => set(key, on), { class: "quiet", "data-scale": key });
  const all = {
    differences: block.baseline ? make("differences", "differences") : null,
    x: block.x?.switch ? make("x", "x logarithmic") : null,
    y: block.y?.switch ? make("y", "y logarithmic") : null,
  };
  return {
    state,
    buttons: Object.values(all),
    show() {
      for (const [key, button] of Object.entries(all)) button?.setAttribute("aria-pressed", state()[key]);
      if (all.y) all.y.disabled = Boolean(block.baseline) && state().differences;
    },
  };
}

// Plot labels its groups for screen readers, which read the chart as one image and its values by the cursor.
function nameParts(plot) {
  for (const part of plot.querySelectorAll("[aria-label]")) {
    part.dataset.part = part.getAttribute("aria-label");
    part.removeAttribute("aria-label");
  }
}

// A chart with its legend, if it is not about recommenders, its switches, its cursor and its numbers.
export function chartView(firstBlock, firstLabel, name = firstLabel) {
  let block = firstBlock;
  let label = firstLabel;
  const kind = CHARTS[block.kind];
  const own = block.recommenders === false;
  let names = own ? kind.series(block) : DATA.recommenders;
  const off = new Set();
  const visible = (series) => (own ? !off.has(series) : isShown([series]));
  // stale until it is drawn, in a frame after the page has loaded
  const canvas = el("div", { class: "canvas", tabindex: 0, role: "group", "data-stale": true });
  const reading = cursor(canvas, () => names);
  const scales = switches(block, name, () => draw());
  const draw = () => {
    const width = widthOf(canvas);
    scales.show();
    const plot = kind.draw(block, width, scales.state(), names, visible);
    nameParts(plot);
    plot.setAttribute("role", "img");
    plot.setAttribute("aria-label", label);
    canvas.setAttribute("aria-label", `${label}: use the arrow keys to read values`);
    canvas.replaceChildren(plot, reading.box);
    canvas.removeAttribute("data-stale");
    reading.over(plot, kind.stops(block, plot, visible, scales.state()));
    key.textContent = kind.key(block).filter(Boolean).join(" ");
    key.hidden = !key.textContent;
  };
  const turn = (series, on) => {
    if (on) off.delete(series);
    else off.add(series);
    draw();
  };
  const ownLegend = () => legendOf(names, turn);
  const legend = el("div", {}, own ? ownLegend() : block.kind === "bars" ? printedLegend(names) : null);
  const key = el("p", { class: "key", hidden: true });
  const marks = el("div", {}, marksOf(block));
  const numbers = el("div", { class: "numbers", hidden: true });
  const fillNumbers = () =>
    numbers.replaceChildren(...(numbers.hidden ? [] : [tableView(kind.table(block), `${label}, numbers`)]));
  const showNumbers = (now) => {
    numbers.hidden = !now;
    fillNumbers();
  };
  const asTable = toggle("Numbers", false, showNumbers, {
    class: "quiet",
    title: "Show the numbers of this chart as a table",
  });
  const saves = saveButtons(
    () => label,
    () => kind.table(block),
    () => canvas.querySelector("svg.chart"),
  );
  const tools = el("div", { class: "tools" }, scales.buttons, asTable, saves);
  let drawnWidth = 0;
  const fit = () => {
    if (chosen.printing || !canvas.clientWidth || canvas.clientWidth === drawnWidth) return;
    drawnWidth = canvas.clientWidth;
    draw();
  };
  // in the next frame: a canvas that grows while sizes are being reported is an error, "ResizeObserver loop"
  new ResizeObserver(() => requestAnimationFrame(fit)).observe(canvas);
  const figure = el("figure", { class: `figure ${block.kind}` }, legend, canvas, key, marks, tools, numbers);
  // shows another block of the same kind, or the same after the reader has hidden something; switches stay as they are
  figure.update = (next, nextLabel = label) => {
    const fresh = own && String(kind.series(next)) !== String(names);
    [block, label] = [next, nextLabel];
    if (fresh) {
      names = kind.series(block);
      off.clear();
      legend.replaceChildren(ownLegend());
    }
    marks.replaceChildren(...[marksOf(block)].filter(Boolean));
    fillNumbers();
    if (canvas.clientWidth) draw();
  };
  return figure;
}

export function legendOf(names, onchange) {
  const items = names.map((name, at) =>
    toggle([swatch(at), name], true, (on) => onchange(name, on), { class: "chip" }),
  );
  return el("div", { class: "legend", role: "group", "aria-label": "Show or hide" }, items);
}

// On paper there is no toolbar that says which colour is whose.
function printedLegend(names) {
  const items = names.map((name, at) => el("span", { class: "chip" }, swatch(at), name));
  return el("div", { class: "legend printed" }, items);
}

function marksOf(block) {
  const marks = (block.marks ?? []).filter((mark) => !mark.labelled);
  if (!marks.length) return null;
  const listed = marks.slice(0, MOST_MARKS).map((mark) => el("li", {}, mark.text));
  const rest = marks.length - listed.length;
  return el("ol", { class: "marks" }, listed, rest ? el("li", { class: "rest" }, `and ${rest} more`) : null);
}
