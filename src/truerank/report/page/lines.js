// Curves over a common axis, with marks, labels at their ends, and exact values beyond a break of the axis.

import {
  axisNumber,
  COMMON,
  chartHeight,
  colour,
  LETTER,
  look,
  padded,
  scale,
  seriesNumber,
  shortened,
  spread,
  symbolName,
} from "./looks.js";
import { isMissing } from "./numbers.js";

const BREAK = 34;
const LINE = 12;
const SYMBOLS = 6;

// All places at which a curve has a value, in their order.
const allPlaces = (curves) => [...new Set(curves.flatMap((curve) => curve.x))].sort(d3.ascending);

// The numbers of those marks that are not too close to the one before.
function apart(marks, domain, log, width) {
  const place = (log ? d3.scaleLog : d3.scaleLinear)(domain, [0, width]);
  let last = -Infinity;
  return marks
    .map(({ x }, at) => ({ x, number: String(at + 1) }))
    .filter(({ x }) => {
      const far = place(x) - last > 15;
      if (far) last = place(x);
      return far;
    });
}

const isRelative = (block, logs) => Boolean(block.baseline) && logs.differences;

// The curves as they are drawn: values, or differences from the baseline.
function drawn(block, logs, visible) {
  const base = isRelative(block, logs) ? block.curves.find(({ name }) => name === block.baseline) : null;
  return block.curves
    .filter((curve) => visible(curve.name))
    .map((curve) =>
      base ? { ...curve, y: curve.y.map((value, at) => value - base.y[at]), end: curve.end - base.end } : curve,
    );
}

// Some points of a curve, each curve at other ones, so that symbols tell apart what colours do not.
function marked(points, at) {
  const step = Math.max(1, Math.floor(points.length / SYMBOLS));
  return points.filter((_, place) => place % step === (at * 2) % step);
}

// Where labels stand: at their values, moved apart where they would overlap.
function labelPlaces(wanted, low, high) {
  const order = d3.sort(wanted, ({ y }) => y);
  let last = low - LINE;
  for (const label of order) {
    label.at = Math.max(label.y, last + LINE);
    last = label.at;
  }
  last = high + LINE;
  for (const label of [...order].reverse()) {
    label.at = Math.min(label.at, last - LINE);
    last = label.at;
  }
  return order;
}

function addLabels(plot, curves, names, hasEnds, [top, bottom], letters) {
  const y = plot.scale("y");
  const right = plot.scale("x").range[1] + (hasEnds ? BREAK : 0);
  const wanted = curves
    .map((curve) => ({ name: curve.name, value: isMissing(curve.end) ? curve.y.at(-1) : curve.end }))
    .filter(({ value }) => !isMissing(value) && Number.isFinite(y.apply(value)))
    .map(({ name, value }) => ({ name, y: y.apply(value) }));
  const layer = d3.select(plot).append("g").attr("data-part", "labels");
  for (const { name, y: from, at } of labelPlaces(wanted, top, bottom)) {
    const stroke = colour(seriesNumber(name, names));
    layer
      .append("path")
      .attr("d", `M${right + 7},${from}L${right + 18},${at}`)
      .attr("stroke", stroke)
      .attr("fill", "none");
    layer
      .append("text")
      .attr("x", right + 21)
      .attr("y", at)
      .attr("dy", "0.32em")
      .attr("text-anchor", "start")
      .attr("fill", "var(--ink)")
      .text(shortened(name, letters));
  }
}

// Two strokes through the axis, and the word for what stands beyond.
function addBreak(plot, bottom, word) {
  const right = plot.scale("x").range[1];
  const layer = d3.select(plot).append("g").attr("data-part", "axis break").attr("stroke", "var(--muted)");
  for (const shift of [12, 16])
    layer
      .append("line")
      .attr("x1", right + shift - 3)
      .attr("x2", right + shift + 3)
      .attr("y1", bottom + 5)
      .attr("y2", bottom - 5);
  layer
    .append("text")
    .attr("x", right + BREAK)
    .attr("y", bottom + 17)
    .attr("text-anchor", "middle")
    .attr("stroke", "none")
    .attr("fill", "var(--muted)")
    .text(word);
}

export const lines = {
  series: (block) => block.curves.map((curve) => curve.name),
  key: () => [],
  draw(block, width, logs, names, visible) {
    const curves = drawn(block, logs, visible);
    const relative = isRelative(block, logs);
    const logY = logs.y && !relative;
    const keep = (point) => !isMissing(point.y) && (!logs.x || point.x > 0) && (!logY || point.y > 0);
    const points = (curve) =>
      d3
        .zip(curve.x, curve.y)
        .map(([x, y]) => ({ x, y }))
        .filter(keep);
    const all = curves.flatMap((curve) => [...curve.y, curve.end]);
    const xs = padded(
      spread(
        block.curves.flatMap((curve) => curve.x),
        logs.x,
      ),
      logs.x,
    );
    const spreadOf = spread(logY ? all : [...all, 0], logY);
    const ys = logY ? padded(spreadOf, true) : d3.scaleLinear().domain(padded(spreadOf, false)).nice().domain();
    const ends = curves.filter((curve) => !isMissing(curve.end) && (!logY || curve.end > 0));
    const longest = d3.max(curves, ({ name }) => name.length) ?? 0;
    const letters = block.recommenders ? Math.min(26, (width * 0.25) / LETTER, longest) : 0;
    const right = 24 + LETTER * letters + (ends.length ? BREAK : 0);
    const height = Math.max(chartHeight(width), LINE * curves.length + 76);
    const [top, bottom] = [COMMON.marginTop, height - COMMON.marginBottom];
    const listed = block.marks.filter((mark) => !mark.labelled);
    const labelled = block.marks.filter((mark) => mark.labelled && mark.x >= xs[0] && mark.x <= xs[1]);
    const yName = relative ? { name: `${block.y.name}, minus that of ${block.baseline}` } : block.y;
    const plot = Plot.plot({
      ...COMMON,
      width,
      height,
      marginLeft: 58,
      marginRight: right,
      x: { ...scale(block.x, logs.x), domain: xs, labelAnchor: "center", labelArrow: "none" },
      y: { ...scale(yName, logY), domain: ys, grid: true, labelArrow: "none" },
      symbol: { type: "identity" },
      marks: [
        logY ? null : Plot.ruleY([0], { stroke: relative ? "var(--muted)" : "var(--faint)" }),
        Plot.ruleX(listed, { x: "x", stroke: "var(--muted)", strokeDasharray: "1 3" }),
        Plot.text(apart(listed, xs, logs.x, width - 58 - right), {
          x: "x",
          frameAnchor: "top",
          dy: -8,
          fill: "var(--muted)",
          text: "number",
        }),
        Plot.ruleX(labelled, { x: "x", stroke: "var(--ink)", strokeWidth: 1 }),
        Plot.text(labelled, {
          x: "x",
          frameAnchor: "bottom",
          dx: 5,
          dy: -6,
          textAnchor: "start",
          text: "text",
          fill: "var(--ink)",
          stroke: "var(--paper)",
          strokeWidth: 4,
        }),
        curves.map((curve) =>
          Plot.line(points(curve), { x: "x", y: "y", strokeWidth: 2, ...look(seriesNumber(curve.name, names)) }),
        ),
        curves.length > 4
          ? curves.map((curve) => dotsAt(marked(points(curve), seriesNumber(curve.name, names)), curve.name, names))
          : null,
        ends.map((curve) => dotsAt([{ x: xs[1], y: curve.end }], curve.name, names, { dx: BREAK, r: 4.5 })),
      ],
    });
    if (!curves.length) return plot;
    if (letters) addLabels(plot, curves, names, ends.length > 0, [top, bottom], letters);
    if (ends.length) addBreak(plot, bottom, "exact");
    return plot;
  },
  stops(block, plot, visible, logs) {
    const curves = drawn(block, logs, visible);
    const position = plot.scale("x");
    const lines = (value) =>
      d3.sort(
        curves.map((curve) => [curve.name, value(curve)]),
        (a, b) => d3.descending(a[1], b[1]),
      );
    const stops = allPlaces(curves)
      .map((x) => ({
        at: position.apply(x),
        title: `${block.x.name}: ${axisNumber(x)}`,
        lines: lines((curve) => curve.y[curve.x.indexOf(x)]),
      }))
      .filter((stop) => Number.isFinite(stop.at));
    return curves.some((curve) => !isMissing(curve.end))
      ? [...stops, { at: position.range[1] + BREAK, title: "exact", lines: lines((curve) => curve.end) }]
      : stops;
  },
  table(block) {
    const rows = allPlaces(block.curves).map((x) => [x, ...block.curves.map((curve) => curve.y[curve.x.indexOf(x)])]);
    if (block.curves.some((curve) => !isMissing(curve.end)))
      rows.push(["exact", ...block.curves.map((curve) => curve.end)]);
    return {
      columns: [
        { name: block.x.name, format: "text" },
        ...block.curves.map(({ name }) => ({ name, format: "number" })),
      ],
      rows,
    };
  },
};

function dotsAt(points, name, names, extra = {}) {
  const at = seriesNumber(name, names);
  return Plot.dot(points, {
    x: "x",
    y: "y",
    r: 3.5,
    fill: colour(at),
    stroke: colour(at),
    strokeWidth: 1.75,
    symbol: symbolName(at),
    clip: false,
    ...extra,
  });
}
