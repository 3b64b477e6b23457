// A line through the chart at one of its stops, with the values there: moved by the pointer or by the arrow keys.

import { el } from "./dom.js";
import { swatch } from "./looks.js";
import { shown } from "./numbers.js";

export function cursor(figure, names) {
  const box = el("div", { class: "readout", role: "status", hidden: true });
  let stops = [];
  let at = null;
  let line = null;
  let plot = null;
  const along = (stop) => stop.at ?? stop.across;
  const show = () => {
    line?.remove();
    box.hidden = at === null || !stops[at];
    if (box.hidden) return;
    const stop = stops[at];
    const [width, height] = ["width", "height"].map((side) => +plot.getAttribute(side));
    const ends = stop.at === undefined ? [0, stop.across, width, stop.across] : [stop.at, 20, stop.at, height - 40];
    line = d3.select(plot).append("line").attr("class", "cursor");
    for (const [name, place] of d3.zip(["x1", "y1", "x2", "y2"], ends)) line.attr(name, place);
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
    const shrink = plot.clientWidth / width;
    const left = (stop.at ?? width * 0.6) * shrink;
    box.style.left = `${Math.max(0, Math.min(left + 12, plot.clientWidth - box.offsetWidth))}px`;
    if (left + 12 + box.offsetWidth > plot.clientWidth)
      box.style.left = `${Math.max(0, left - 12 - box.offsetWidth)}px`;
    box.style.top = `${(stop.across === undefined ? 24 : stop.across + 14) * shrink}px`;
  };
  const move = (to) => {
    at = to;
    show();
  };
  const keys = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };
  figure.addEventListener("pointermove", (event) => {
    if (!plot || !stops.length) return;
    const frame = plot.getBoundingClientRect();
    const shrink = frame.width / +plot.getAttribute("width");
    const place = (stops[0].at === undefined ? event.clientY - frame.top : event.clientX - frame.left) / shrink;
    move(d3.leastIndex(stops, (a, b) => Math.abs(along(a) - place) - Math.abs(along(b) - place)));
  });
  figure.addEventListener("pointerleave", () => move(null));
  figure.addEventListener("blur", () => move(null));
  figure.addEventListener("keydown", (event) => {
    if (event.key === "Escape") move(null);
    if (!(event.key in keys) || !stops.length) return;
    event.preventDefault();
    move(at === null ? 0 : Math.max(0, Math.min(stops.length - 1, at + keys[event.key])));
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
