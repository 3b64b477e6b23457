// Adjacent bars for each group, one per recommender.

import { COMMON, chartHeight, look, scale, seriesNumber } from "./looks.js";

export const bars = {
  series: (block) => block.bars.map((bars) => bars.name),
  draw(block, width, logs, names, visible) {
    const series = block.bars.filter((bars) => visible(bars.name));
    const cells = series.flatMap((bars) =>
      block.groups.map((group, at) => ({ group, name: bars.name, y: bars.y[at] })),
    );
    const least = logs.y ? 0.5 : 0;
    const most = d3.max(cells, (cell) => cell.y) ?? 1;
    return Plot.plot({
      ...COMMON,
      width,
      height: chartHeight(width),
      marginLeft: 58,
      marginBottom: width < 520 ? 84 : 44,
      fx: {
        domain: block.groups,
        label: block.x.name,
        padding: 0.15,
        tickRotate: width < 520 ? -50 : 0,
        labelArrow: "none",
      },
      x: { axis: null, domain: series.map((bars) => bars.name), padding: 0.08 },
      y: {
        ...scale(block.y, logs.y),
        domain: [least, Math.max(most, least * 2, 1e-9)],
        nice: !logs.y,
        grid: true,
        labelArrow: "none",
      },
      marks: [
        series.map((bars) =>
          Plot.barY(
            cells.filter((cell) => cell.name === bars.name && cell.y > least),
            {
              fx: "group",
              x: "name",
              y1: least,
              y2: "y",
              fill: look(seriesNumber(bars.name, names)).stroke,
            },
          ),
        ),
        Plot.ruleY([least], { stroke: "var(--muted)" }),
      ],
    });
  },
  stops(block, plot, visible) {
    const series = block.bars.filter((bars) => visible(bars.name));
    const position = plot.scale("fx");
    // Plot has no scale for bars that are all hidden
    if (!position) return [];
    return block.groups.map((group, at) => ({
      at: position.apply(group) + position.bandwidth / 2,
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
