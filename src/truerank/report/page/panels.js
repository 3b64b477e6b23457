// Small charts of means with intervals, one per group, with the same rows and the same axis.

import { dotKey, dotLines, dotMarks } from "./dots.js";
import { COMMON, LETTER, labelWidth, padded, scale, shortened, spread } from "./looks.js";
import { isShown } from "./state.js";

const LEAST_WIDTH = 150;
const TITLE = 34;

const shownOf = (block) =>
  block.panels.flatMap((panel, at) =>
    panel.dots.filter((dot) => isShown(dot.about)).map((dot) => ({ ...dot, panel: panel.title, at })),
  );

export const panels = {
  series: (block) => [...new Set(block.panels.flatMap(({ dots }) => dots.map((dot) => dot.about[0])))],
  key: (block) => dotKey(shownOf(block)),
  draw(block, width, _logs, names) {
    const dots = shownOf(block);
    const rows = [...new Set(dots.map((dot) => dot.row))];
    const labels = labelWidth(rows, width * 0.7);
    const longest = d3.max(block.panels, ({ title }) => title.length) ?? 0;
    const least = Math.max(LEAST_WIDTH, Math.min(200, 7.5 * longest));
    const columns = Math.max(1, Math.min(block.panels.length, Math.floor((width - labels) / least)));
    const lines = Math.ceil(block.panels.length / columns);
    const inside = (rows.length > 16 ? 13 : rows.length > 8 ? 14 : 17) * Math.max(1, rows.length);
    const facet = { fx: (dot) => dot.at % columns, fy: (dot) => Math.floor(dot.at / columns) };
    const titles = block.panels.map(({ title, size }, at) => ({ title, size, at }));
    const across = (width - labels - 12) / columns;
    const heading = { ...facet, frameAnchor: "top-left", fill: "var(--ink)" };
    return Plot.plot({
      ...COMMON,
      width,
      height: lines * (inside + TITLE) + 44,
      marginTop: TITLE,
      marginLeft: labels,
      marginRight: 12,
      fx: { axis: null, domain: d3.range(columns), padding: 0.06 },
      fy: { axis: null, domain: d3.range(lines), padding: lines > 1 ? TITLE / (inside + TITLE) : 0 },
      x: {
        ...scale(block.x, false),
        nice: true,
        grid: true,
        ticks: across < 150 ? 2 : 4,
        labelAnchor: "center",
        labelArrow: "none",
        domain: padded(spread(dots.flatMap((dot) => [dot.mean, dot.low, dot.high]))),
      },
      y: { type: "band", domain: rows, label: null, tickSize: 0, tickFormat: (row) => shortened(row, labels / LETTER) },
      color: { type: "identity" },
      symbol: { type: "identity" },
      marks: [
        Plot.text(titles, {
          ...heading,
          dy: -26,
          fontWeight: 600,
          text: ({ title }) => shortened(title, across / 7.5),
        }),
        Plot.text(titles, { ...heading, dy: -12, fill: "var(--muted)", text: "size" }),
        ...dotMarks(dots, names, facet),
      ],
    });
  },
  stops(block, plot) {
    const [x, y, fx, fy] = ["x", "y", "fx", "fy"].map((name) => plot.scale(name));
    if (!y?.domain.length) return [];
    const columns = fx.domain.length;
    return shownOf(block).map((dot) => ({
      x: fx.apply(dot.at % columns) + x.apply(dot.mean) - fx.range[0],
      y: fy.apply(Math.floor(dot.at / columns)) + y.apply(dot.row) + y.bandwidth / 2 - fy.range[0],
      title: `${dot.row}, ${dot.panel}`,
      lines: dotLines(dot, block.interval),
    }));
  },
  table(block) {
    const dots = block.panels.flatMap(({ title, size, dots }) => dots.map((dot) => ({ ...dot, title, size })));
    return {
      columns: [
        { name: "group", format: "text" },
        { name: "size", format: "text" },
        { name: "recommender", format: "text" },
        { name: block.x.name, format: "number" },
        { name: block.interval, format: "interval" },
      ],
      rows: dots.map((dot) => [dot.title, dot.size, dot.row, dot.mean, [dot.low, dot.high]]),
      about: dots.map((dot) => dot.about),
    };
  },
};
