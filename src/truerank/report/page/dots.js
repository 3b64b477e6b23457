// Means with intervals, row by row; a mean outside its interval is hollow.

import { COMMON, look, padded, scale, seriesNumber, shortened, spread, symbolName } from "./looks.js";
import { isOutside } from "./numbers.js";
import { isShown } from "./state.js";

export const dots = {
  series: (block) => [...new Set(block.dots.map((dot) => dot.about[0]))],
  draw(block, width, _logs, names) {
    const dots = block.dots.filter((dot) => isShown(dot.about));
    const numbers = dots.flatMap((dot) => [dot.mean, dot.low, dot.high]);
    const text = (dot, at) => (dot.group && dots[at - 1]?.group === dot.group ? "" : dot.group || dot.row);
    const texts = new Map(dots.map((dot, at) => [dot.row, text(dot, at)]));
    const labels = Math.min(width * 0.38, 16 + 7.2 * (d3.max(texts.values(), (label) => label.length) ?? 0));
    const at = (dot) => seriesNumber(dot.about[0], names);
    const ends = {
      nice: true,
      grid: true,
      labelAnchor: "center",
      labelArrow: "none",
      ticks: width < 520 ? 4 : undefined,
    };
    return Plot.plot({
      ...COMMON,
      width,
      height: 74 + (dots[0]?.group ? 22 : 30) * dots.length,
      marginLeft: labels,
      x: { ...scale(block.x, false), ...ends, domain: padded(spread(block.zero ? [...numbers, 0] : numbers)) },
      y: {
        domain: dots.map((dot) => dot.row),
        label: null,
        tickSize: 0,
        tickFormat: (row) => shortened(texts.get(row), labels / 7.2),
      },
      color: { type: "identity" },
      symbol: { type: "identity" },
      marks: [
        block.zero ? Plot.ruleX([0], { stroke: "var(--muted)" }) : null,
        Plot.ruleY(
          dots.filter((dot, place) => place && texts.get(dot.row) && dot.group),
          { y: "row", dy: -11, stroke: "var(--faint)" },
        ),
        Plot.ruleY(dots, {
          x1: "low",
          x2: "high",
          y: "row",
          strokeWidth: 3,
          strokeOpacity: 0.45,
          stroke: (dot) => look(at(dot)).stroke,
        }),
        Plot.dot(dots, {
          x: "mean",
          y: "row",
          r: 5,
          fill: (dot) => (isOutside([dot.mean, dot.low, dot.high]) ? "var(--paper)" : look(at(dot)).stroke),
          stroke: (dot) => look(at(dot)).stroke,
          strokeWidth: 2,
          symbol: (dot) => symbolName(at(dot)),
        }),
      ],
    });
  },
  stops(block, plot) {
    const position = plot.scale("y");
    return block.dots
      .filter((dot) => isShown(dot.about))
      .map((dot) => ({
        across: position.apply(dot.row) + (position.bandwidth ?? 0) / 2,
        title: dot.row,
        lines: [
          [isOutside([dot.mean, dot.low, dot.high]) ? "mean, outside the interval" : "mean", dot.mean],
          [block.interval, [dot.low, dot.high], "interval"],
        ],
      }));
  },
  table(block) {
    const columns = [
      { name: "", format: "text" },
      { name: block.x.name, format: "number" },
      { name: block.interval, format: "interval" },
    ];
    return {
      columns,
      rows: block.dots.map((dot) => [dot.row, dot.mean, [dot.low, dot.high]]),
      about: block.dots.map((dot) => dot.about),
    };
  },
};
