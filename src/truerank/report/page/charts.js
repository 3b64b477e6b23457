// Charts of blocks, drawn by Plot. Each kind has a file, in which it says what is drawn, where the cursor can stop and
// what it reads there, and the numbers as a table.

import { bars } from "./bars.js";
import { cursor } from "./cursor.js";
import { DATA, el, toggle } from "./dom.js";
import { dots } from "./dots.js";
import { lines } from "./lines.js";
import { swatch } from "./looks.js";
import { isShown } from "./state.js";
import { tableView } from "./tables.js";

const CHARTS = { bars, dots, lines };
const MOST_MARKS = 12;

function scaleToggle(axis, name, logs, redraw) {
  if (!axis?.switch) return null;
  const rescale = (now) => {
    logs[name] = now;
    redraw();
  };
  return toggle(`${name} logarithmic`, axis.log, rescale, { class: "quiet", "data-scale": name });
}

// A chart with its legend, if it is not about recommenders, its switches, its cursor and its numbers.
export function chartView(firstBlock, firstLabel) {
  let block = firstBlock;
  let label = firstLabel;
  const kind = CHARTS[block.kind];
  const own = block.recommenders === false;
  let names = own ? kind.series(block) : DATA.recommenders;
  const off = new Set();
  const visible = (name) => (own ? !off.has(name) : isShown([name]));
  const logs = { x: block.x?.log ?? false, y: block.y?.log ?? false };
  const canvas = el("div", { class: "canvas", tabindex: 0, role: "group" });
  const reading = cursor(canvas, () => names);
  const draw = () => {
    const width = Math.max(280, canvas.clientWidth);
    const plot = kind.draw(block, width, logs, names, visible);
    plot.setAttribute("role", "img");
    plot.setAttribute("aria-label", label);
    canvas.setAttribute("aria-label", `${label}: use the arrow keys to read values`);
    canvas.replaceChildren(plot, reading.box);
    reading.over(plot, kind.stops(block, plot, visible));
  };
  const turn = (name, on) => {
    if (on) off.delete(name);
    else off.add(name);
    draw();
  };
  const ownLegend = () => legendOf(names, turn);
  const legend = el("div", {}, own ? ownLegend() : null);
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
  const tools = el(
    "div",
    { class: "tools" },
    scaleToggle(block.x, "x", logs, draw),
    scaleToggle(block.y, "y", logs, draw),
    asTable,
  );
  let drawnWidth = 0;
  const fit = () => {
    if (!canvas.clientWidth || canvas.clientWidth === drawnWidth) return;
    drawnWidth = canvas.clientWidth;
    draw();
  };
  // in the next frame: a canvas that grows while sizes are being reported is an error, "ResizeObserver loop"
  new ResizeObserver(() => requestAnimationFrame(fit)).observe(canvas);
  const figure = el("figure", { class: `figure ${block.kind}` }, legend, canvas, marks, tools, numbers);
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

function marksOf(block) {
  if (!block.marks?.length) return null;
  const listed = block.marks.slice(0, MOST_MARKS).map((mark) => el("li", {}, mark.text));
  const rest = block.marks.length - listed.length;
  return el("ol", { class: "marks" }, listed, rest ? el("li", { class: "rest" }, `and ${rest} more`) : null);
}
