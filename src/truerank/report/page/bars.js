// Adjacent bars for each group, one per recommender; of many recommenders, lines over the groups.

import { COMMON, chartHeight, colour, look, scale, seriesNumber, symbolName } from "./looks.js";

const MOST_BARS = 6;

function barMarks(series, cells, least, names) {
  return series.map((bars) =>
    Plot.barY(
      cells.filter((cell) => cell.name === bars.name && cell.y > least),
      { fx: "group", x: "name", y1: least, y2: "y", fill: colour(seriesNumber(bars.name, names)) },
    ),
  );
}

function lineMarks(series, cells, least, names) {
  return series.flatMap((bars) => {
    const at = seriesNumber(bars.name, names);
    const own = cells.filter((cell) => cell.name === bars.name && cell.y > least);
    const dots = { fill: "var(--paper)", stroke: colour(at), symbol: symbolName(at), r: 4, strokeWidth: 1.75 };
    return [
      Plot.line(own, { x: "group", y: "y", strokeWidth: 1.75, ...look(at) }),
      Plot.dot(own, { x: "group", y: "y", ...dots }),
    ];
  });
}

const inOrder = (block, visible, names) =>
  d3.sort(
    block.bars.filter((bars) => visible(bars.name)),
    (bars) => seriesNumber(bars.name, names),
  );

export const bars = {
  series: (block) => block.bars.map((bars) => bars.name),
  key: () => [],
  draw(block, width, logs, names, visible) {
    const series = inOrder(block, visible, names);
    const cells = series.flatMap((bars) =>
      block.groups.map((group, at) => ({ group, name: bars.name, y: bars.y[at] })),
    );
    const least = logs.y ? 0.5 : 0;
    const most = d3.max(cells, (cell) => cell.y) ?? 1;
    const many = series.length > MOST_BARS;
    const groups = {
      domain: block.groups,
      label: block.x.name,
      tickRotate: width < 440 ? -50 : 0,
      labelArrow: "none",
      labelAnchor: "center",
    };
    return Plot.plot({
      ...COMMON,
      width,
      height: chartHeight(width),
      marginLeft: 58,
      marginBottom: width < 440 ? 84 : 44,
      ...(many
        ? { x: { ...groups, type: "point", padding: 0.3 } }
        : {
            fx: { ...groups, padding: 0.15 },
            x: { axis: null, domain: series.map((bars) => bars.name), padding: 0.08 },
          }),
      y: {
        ...scale(block.y, logs.y),
        domain: [least, Math.max(most, least * 2, 1e-9)],
        nice: !logs.y,
        grid: true,
        labelArrow: "none",
      },
      symbol: { type: "identity" },
      marks: [
        (many ? lineMarks : barMarks)(series, cells, least, names),
        Plot.ruleY([least], { stroke: "var(--muted)" }),
      ],
    });
  },
  stops(block, plot, visible) {
    const series = block.bars.filter((bars) => visible(bars.name));
    const position = series.length > MOST_BARS ? plot.scale("x") : plot.scale("fx");
    // Plot has no scale for bars that are all hidden
    if (!position) return [];
    return block.groups.map((group, at) => ({
      at: position.apply(group) + (position.bandwidth ?? 0) / 2,
      title: `${block.x.name}: ${group}`,
      lines: series.map((bars) => [bars.name, bars.y[at], "count"]),
    }));
  },
  table(block) {
    const rows = block.groups.map((group, at) => [group, ...block.bars.map((bars) => bars.y[at])]);
    return {
      columns: [{ name: block.x.name, format: "text" }, ...block.bars.map(({ name }) => ({ name, format: "count" }))],
      rows,
    };
  },
};
