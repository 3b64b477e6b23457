// Curves over a common axis, with marks and with dots at their ends.

import { axisNumber, COMMON, chartHeight, look, padded, scale, seriesNumber, spread } from "./looks.js";
import { isMissing } from "./numbers.js";

// All places at which a curve has a value, in their order.
const allPlaces = (curves) => [...new Set(curves.flatMap((curve) => curve.x))].sort(d3.ascending);

// The numbers of those marks that are not too close to the one before.
function apart(marks, domain, log, width) {
  const place = (log ? d3.scaleLog : d3.scaleLinear)(domain, [0, width - 82]);
  let last = -Infinity;
  return marks
    .map(({ x }, at) => ({ x, number: String(at + 1) }))
    .filter(({ x }) => {
      const far = place(x) - last > 15;
      if (far) last = place(x);
      return far;
    });
}

export const lines = {
  series: (block) => block.curves.map((curve) => curve.name),
  draw(block, width, logs, names, visible) {
    const curves = block.curves.filter((curve) => visible(curve.name));
    const keep = (point) => !isMissing(point.y) && (!logs.x || point.x > 0) && (!logs.y || point.y > 0);
    const points = (curve) =>
      d3
        .zip(curve.x, curve.y)
        .map(([x, y]) => ({ x, y }))
        .filter(keep);
    const all = curves.flatMap((curve) => [...curve.y, curve.end]);
    const low = spread(all, logs.y)[0];
    const xs = padded(
      spread(
        block.curves.flatMap((curve) => curve.x),
        logs.x,
      ),
      logs.x,
    );
    const ys = padded(logs.y ? spread(all, true) : spread([...all, Math.min(low, 0)], false), logs.y);
    const ends = curves
      .filter((curve) => !isMissing(curve.end))
      .map((curve) => ({ x: xs[1], y: curve.end, name: curve.name }));
    return Plot.plot({
      ...COMMON,
      width,
      height: chartHeight(width),
      marginLeft: 58,
      x: { ...scale(block.x, logs.x), domain: xs, labelAnchor: "center", labelArrow: "none" },
      y: { ...scale(block.y, logs.y), domain: ys, nice: !logs.y, grid: true, labelArrow: "none" },
      marks: [
        low < 0 ? Plot.ruleY([0], { stroke: "var(--faint)" }) : null,
        Plot.ruleX(block.marks, { x: "x", stroke: "var(--muted)", strokeDasharray: "1 3" }),
        Plot.text(apart(block.marks, xs, logs.x, width), {
          x: "x",
          frameAnchor: "top",
          dy: -10,
          fill: "var(--muted)",
          text: "number",
        }),
        curves.map((curve) =>
          Plot.line(points(curve), { x: "x", y: "y", strokeWidth: 2, ...look(seriesNumber(curve.name, names)) }),
        ),
        ends.map((end) =>
          Plot.dot([end], {
            x: "x",
            y: "y",
            r: 4.5,
            fill: look(seriesNumber(end.name, names)).stroke,
            stroke: "var(--paper)",
            clip: false,
          }),
        ),
      ],
    });
  },
  stops(block, plot, visible) {
    const curves = block.curves.filter((curve) => visible(curve.name));
    const position = plot.scale("x");
    return allPlaces(curves)
      .map((x) => ({
        at: position.apply(x),
        title: `${block.x.name}: ${axisNumber(x)}`,
        lines: curves.map((curve) => [curve.name, curve.y[curve.x.indexOf(x)]]),
      }))
      .filter((stop) => Number.isFinite(stop.at));
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
