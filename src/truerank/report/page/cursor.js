// A line through the chart at one of its stops, or a ring around it, with the values there: moved by the pointer or by
// the arrow keys. A stop has a place `at` along x, or `across` along y, or is a point with x and y.

import { el } from "./dom.js";
import { swatch } from "./looks.js";
import { shown } from "./numbers.js";

const MANY = 12;
const isPoint = (stop) => stop.x !== undefined;

function distance(stop, x, y) {
  if (isPoint(stop)) return Math.hypot(stop.x - x, stop.y - y);
  return stop.at === undefined ? Math.abs(stop.across - y) : Math.abs(stop.at - x);
}

function outline(plot, stop, width, height) {
  if (isPoint(stop))
    return d3
      .select(plot)
      .append("circle")
      .attr("class", "cursor ring")
      .attr("cx", stop.x)
      .attr("cy", stop.y)
      .attr("r", 9);
  const ends = stop.at === undefined ? [0, stop.across, width, stop.across] : [stop.at, 20, stop.at, height - 40];
  const line = d3.select(plot).append("line").attr("class", "cursor");
  for (const [name, place] of d3.zip(["x1", "y1", "x2", "y2"], ends)) line.attr(name, place);
  return line;
}

export function cursor(figure, names) {
  const box = el("div", { class: "readout", role: "status", hidden: true });
  let stops = [];
  let at = null;
  let line = null;
  let plot = null;
  const show = () => {
    line?.remove();
    box.hidden = at === null || !stops[at];
    if (box.hidden) return;
    const stop = stops[at];
    const [width, height] = ["width", "height"].map((side) => +plot.getAttribute(side));
    line = outline(plot, stop, width, height);
    const rows = stop.lines.map(([name, value, format]) =>
      el(
        "div",
        {},
        names().includes(name) ? swatch(names().indexOf(name)) : null,
        el("span", {}, name),
        el("b", {}, shown(value, format ?? "number")),
      ),
    );
    box.replaceChildren(el("strong", {}, stop.title), ...rows);
    box.classList.toggle("many", rows.length > MANY);
    const shrink = plot.clientWidth / width;
    const left = (stop.at ?? stop.x ?? width * 0.6) * shrink;
    const room = figure.clientWidth;
    box.style.left = `${Math.max(0, left + 12 + box.offsetWidth > room ? left - 12 - box.offsetWidth : left + 12)}px`;
    box.style.top = `${(stop.across ?? stop.y ?? 10) * shrink + 14}px`;
  };
  const move = (to) => {
    at = to;
    show();
  };
  const steps = () => ({ ArrowLeft: -1, ArrowRight: 1, ArrowUp: -(stops.columns ?? 1), ArrowDown: stops.columns ?? 1 });
  figure.addEventListener("pointermove", (event) => {
    if (!plot || !stops.length) return;
    const frame = plot.getBoundingClientRect();
    const shrink = frame.width / +plot.getAttribute("width");
    const [x, y] = [(event.clientX - frame.left) / shrink, (event.clientY - frame.top) / shrink];
    move(d3.leastIndex(stops, (a, b) => distance(a, x, y) - distance(b, x, y)));
  });
  figure.addEventListener("pointerleave", () => move(null));
  figure.addEventListener("blur", () => move(null));
  figure.addEventListener("keydown", (event) => {
    if (event.key === "Escape") move(null);
    if (!(event.key in steps()) || !stops.length) return;
    event.preventDefault();
    move(at === null ? 0 : Math.max(0, Math.min(stops.length - 1, at + steps()[event.key])));
  });
  return {
    box,
    over(newPlot, newStops) {
      [plot, stops, line] = [newPlot, newStops, null];
      at = at !== null && at < stops.length ? at : null;
      show();
    },
  };
}
