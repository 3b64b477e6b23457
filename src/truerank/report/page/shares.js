// For what share of the users each recommender is better than another one, to the right, and worse, to the left.

import { COMMON, colour, LETTER, labelWidth, rowHeight, seriesNumber, shortened } from "./looks.js";
import { isShown } from "./state.js";

// What the number beside a bar takes.
const BESIDE = 36;
const percent = (share) => `${Math.round(100 * Math.abs(share))} %`;

export const shares = {
  series: (block) => block.shares.map((share) => share.row),
  key: () => [],
  draw(block, width, _logs, names) {
    const rows = block.shares.filter((share) => isShown(share.about));
    const labels = labelWidth(
      rows.map((share) => share.row),
      width,
    );
    const shade = (share) => colour(seriesNumber(share.row, names));
    const most = Math.max(0.02, d3.max(rows, (share) => Math.max(share.better, share.worse)) ?? 0);
    const half = Math.max(2 * BESIDE, (width - labels - 12) / 2);
    const outer = (most * half) / (half - BESIDE);
    const text = { y: "row", fill: "var(--ink)", fontSize: 11 };
    return Plot.plot({
      ...COMMON,
      width,
      height: 66 + Math.min(22, rowHeight(rows.length)) * rows.length,
      marginTop: 24,
      marginLeft: labels,
      marginRight: 12,
      marginBottom: 42,
      x: {
        domain: [-outer, outer],
        tickFormat: percent,
        label: block.x.name,
        labelAnchor: "center",
        labelArrow: "none",
        ticks: width < 520 ? 3 : undefined,
      },
      y: {
        domain: rows.map((share) => share.row),
        label: null,
        tickSize: 0,
        tickFormat: (row) => shortened(row, labels / LETTER),
      },
      color: { type: "identity" },
      marks: [
        Plot.barX(rows, { y: "row", x1: 0, x2: "better", fill: shade, insetTop: 1, insetBottom: 1 }),
        Plot.barX(rows, {
          y: "row",
          x1: (share) => -share.worse,
          x2: 0,
          fill: shade,
          fillOpacity: 0.35,
          stroke: shade,
          inset: 1,
        }),
        Plot.text(rows, { ...text, x: "better", dx: 4, textAnchor: "start", text: (share) => percent(share.better) }),
        Plot.text(rows, {
          ...text,
          x: (share) => -share.worse,
          dx: -4,
          textAnchor: "end",
          text: (share) => percent(share.worse),
        }),
        Plot.ruleX([0], { stroke: "var(--muted)" }),
        ...[-1, 1].map((side) =>
          Plot.text([side < 0 ? "← worse off" : "better off →"], {
            x: 0,
            frameAnchor: "top",
            dx: 16 * side,
            dy: -14,
            fill: "var(--muted)",
            text: (word) => word,
            textAnchor: side < 0 ? "end" : "start",
          }),
        ),
      ],
    });
  },
  stops(block, plot) {
    const position = plot.scale("y");
    return block.shares
      .filter((share) => isShown(share.about))
      .map((share) => ({
        across: position.apply(share.row) + position.bandwidth / 2,
        title: share.row,
        lines: [
          ["better off", share.better, "share"],
          ["no difference", 1 - share.better - share.worse, "share"],
          ["worse off", share.worse, "share"],
        ],
      }));
  },
  table(block) {
    return {
      columns: [
        { name: "recommender", format: "text" },
        { name: "better off", format: "share" },
        { name: "worse off", format: "share" },
      ],
      rows: block.shares.map((share) => [share.row, share.better, share.worse]),
      about: block.shares.map((share) => share.about),
    };
  },
};
