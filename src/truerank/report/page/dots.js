// Means with intervals, row by row: hollow where a mean is outside its interval, hatched where it is not determined. A
// tick is the exact value, and rows that belong together are joined by a line on the right.

import {
  COMMON,
  colour,
  LETTER,
  labelWidth,
  padded,
  rowHeight,
  scale,
  seriesNumber,
  shortened,
  spread,
  symbolName,
} from "./looks.js";
import { isMissing, isOutside } from "./numbers.js";
import { isShown } from "./state.js";

const BETWEEN_LINES = 11;
const MOST_LINES = 12;
const isHollow = (dot) => isOutside([dot.mean, dot.low, dot.high]);

// The marks of dots whose rows are on the y axis; `facet` places them in small multiples.
export function dotMarks(dots, names, facet = {}) {
  const shade = (dot) => colour(seriesNumber(dot.about[0], names));
  const ends = { x1: "low", x2: "high", y: "row", stroke: shade, ...facet };
  return [
    Plot.ruleY(
      dots.filter((dot) => dot.determined),
      { ...ends, strokeWidth: 3, strokeOpacity: 0.45 },
    ),
    Plot.ruleY(
      dots.filter((dot) => !dot.determined),
      { ...ends, strokeWidth: 9, strokeDasharray: "1.5 3", ariaLabel: "hatched" },
    ),
    Plot.dot(dots, {
      x: "mean",
      y: "row",
      r: 4.5,
      fill: (dot) => (isHollow(dot) ? "var(--paper)" : shade(dot)),
      stroke: shade,
      strokeWidth: 2,
      symbol: (dot) => symbolName(seriesNumber(dot.about[0], names)),
      ...facet,
    }),
    Plot.tickX(
      dots.filter((dot) => !isMissing(dot.truth)),
      { x: "truth", y: "row", stroke: "var(--ink)", strokeWidth: 2, ...facet },
    ),
  ];
}

export function dotKey(dots) {
  return [
    dots.some(isHollow) ? "Hollow: the value lies outside its interval." : "",
    dots.some((dot) => !dot.determined) ? "Hatched: not determined." : "",
    dots.some((dot) => !isMissing(dot.truth)) ? "Tick: the exact value." : "",
  ];
}

export function dotLines(dot, interval) {
  return [
    [isHollow(dot) ? "mean, outside the interval" : dot.determined ? "mean" : "mean, not determined", dot.mean],
    [interval, [dot.low, dot.high], "interval"],
    ...(isMissing(dot.truth) ? [] : [["exact", dot.truth]]),
  ];
}

function joinRows(plot, together, rows, right) {
  const place = plot.scale("y");
  const lines = together
    .map((group) => group.filter((name) => rows.includes(name)))
    .filter((group) => group.length > 1);
  const layer = d3.select(plot).append("g").attr("data-part", "together").attr("stroke", "var(--muted)");
  for (const [at, group] of lines.entries()) {
    const x = right + 14 + (BETWEEN_LINES * at * Math.min(lines.length, MOST_LINES)) / lines.length;
    const ys = group.map((name) => place.apply(name) + place.bandwidth / 2);
    layer
      .append("line")
      .attr("x1", x)
      .attr("x2", x)
      .attr("y1", d3.min(ys))
      .attr("y2", d3.max(ys))
      .attr("stroke-width", 2);
    for (const y of ys) layer.append("circle").attr("cx", x).attr("cy", y).attr("r", 2.5).attr("fill", "var(--muted)");
  }
}

// A name with the size of its group, in two lines where one is too short and rows are high enough.
const fitted = (row, letters, height) =>
  row.length > letters && height >= 28 ? row.replace(/, (?=n = )/, "\n") : shortened(row, letters);

export const dots = {
  series: (block) => [...new Set(block.dots.map((dot) => dot.about[0]))],
  key: (block) => dotKey(block.dots.filter((dot) => isShown(dot.about))),
  draw(block, width, _logs, names) {
    const dots = block.dots.filter((dot) => isShown(dot.about));
    const numbers = dots.flatMap((dot) => [dot.mean, dot.low, dot.high, dot.truth]);
    const rows = dots.map((dot) => dot.row);
    const labels = labelWidth(rows, width);
    const right = 24 + BETWEEN_LINES * Math.min(MOST_LINES, block.together.length);
    const inside = width - labels - right;
    const plot = Plot.plot({
      ...COMMON,
      width,
      height: 58 + rowHeight(dots.length) * dots.length,
      marginTop: 8,
      marginLeft: labels,
      marginRight: right,
      x: {
        ...scale(block.x, false),
        nice: true,
        grid: true,
        labelAnchor: LETTER * block.x.name.length < inside ? "center" : "right",
        labelArrow: "none",
        ticks: width < 520 ? Math.max(2, inside / 70) : undefined,
        domain: padded(spread(block.zero ? [...numbers, 0] : numbers)),
      },
      y: {
        type: "band",
        domain: rows,
        label: null,
        tickSize: 0,
        tickFormat: (row) => fitted(row, labels / LETTER, rowHeight(dots.length)),
      },
      color: { type: "identity" },
      symbol: { type: "identity" },
      marks: [block.zero ? Plot.ruleX([0], { stroke: "var(--muted)" }) : null, ...dotMarks(dots, names)],
    });
    if (dots.length) joinRows(plot, block.together, rows, width - right);
    return plot;
  },
  stops(block, plot) {
    const position = plot.scale("y");
    return block.dots
      .filter((dot) => isShown(dot.about))
      .map((dot) => ({
        across: position.apply(dot.row) + (position.bandwidth ?? 0) / 2,
        title: dot.row,
        lines: dotLines(dot, block.interval),
      }));
  },
  table(block) {
    const exact = block.dots.some((dot) => !isMissing(dot.truth));
    const columns = [
      { name: "row", format: "text" },
      { name: block.x.name, format: "number" },
      { name: block.interval, format: "interval" },
      ...(exact ? [{ name: "exact", format: "number" }] : []),
    ];
    return {
      columns,
      rows: block.dots.map((dot) => [dot.row, dot.mean, [dot.low, dot.high], ...(exact ? [dot.truth] : [])]),
      about: block.dots.map((dot) => dot.about),
    };
  },
};
