// All pairs of recommenders: the row minus the column. Filled where one is better, hollow where no difference was found,
// hatched where the order is not determined.

import { COMMON, LETTER, labelWidth, shortened } from "./looks.js";
import { decimals, minus } from "./numbers.js";
import { isShown } from "./state.js";

const MOST_WIDE = 64;

// Each pair twice: as it is, and with its two exchanged.
const bothWays = (pair) => [
  pair,
  {
    ...pair,
    recommender: pair.baseline,
    baseline: pair.recommender,
    difference: -pair.difference,
    low: -pair.high,
    high: -pair.low,
    relative: null,
  },
];
const namesOf = (block) => block.names.filter((name) => isShown([name]));

function cells(block) {
  const names = namesOf(block);
  const found = new Map(
    block.pairs.flatMap(bothWays).map((pair) => [JSON.stringify([pair.recommender, pair.baseline]), pair]),
  );
  return names.flatMap((row) =>
    names.filter((name) => name !== row).map((name) => found.get(JSON.stringify([row, name]))),
  );
}

function hatch(plot) {
  const pattern = d3
    .select(plot)
    .append("defs")
    .append("pattern")
    .attr("id", "hatch")
    .attr("width", 6)
    .attr("height", 6)
    .attr("patternUnits", "userSpaceOnUse")
    .attr("patternTransform", "rotate(45)");
  pattern.append("line").attr("y2", 6).attr("stroke", "var(--muted)").attr("stroke-width", 1.5);
}

const short = (value) => {
  const text = minus(decimals(Math.abs(value)));
  return `${value < 0 ? "−" : "+"}${text.replace(/^0\./, ".")}`;
};

export const matrix = {
  series: (block) => block.names,
  key: (block) => [
    "Row minus column. Blue: the row is better. Orange: the column is.",
    block.pairs.some((pair) => pair.kind !== "better" && pair.kind !== "not determined")
      ? "Empty: no difference was found."
      : "",
    block.pairs.some((pair) => pair.kind === "not determined") ? "Hatched: not determined by this sample." : "",
  ],
  draw(block, width) {
    const names = namesOf(block);
    const all = cells(block);
    const labels = labelWidth(names, width * 0.8);
    const step = Math.min(MOST_WIDE, (width - labels - 40) / Math.max(1, names.length));
    const high = Math.max(16, Math.min(24, step));
    const above = Math.min(110, 12 + 0.72 * LETTER * (d3.max(names, (name) => name.length) ?? 0));
    const fill = (pair) => (pair.winner === pair.recommender ? "var(--better)" : "var(--worse)");
    const place = { x: "baseline", y: "recommender", inset: 0.75 };
    const most = d3.max(all, (pair) => Math.abs(pair.difference)) || 1;
    const plot = Plot.plot({
      ...COMMON,
      width: labels + step * names.length + 40,
      height: above + high * names.length + 8,
      marginTop: above,
      marginLeft: labels,
      marginRight: 40,
      marginBottom: 8,
      x: {
        domain: names,
        axis: "top",
        label: null,
        tickSize: 0,
        tickRotate: -45,
        tickFormat: (name) => shortened(name, above / (0.72 * LETTER)),
        padding: 0,
      },
      y: {
        domain: names,
        label: null,
        tickSize: 0,
        padding: 0,
        tickFormat: (name) => shortened(name, labels / LETTER),
      },
      color: { type: "identity" },
      marks: [
        Plot.cell(
          all.filter((pair) => pair.kind === "better"),
          { ...place, fill, fillOpacity: (pair) => 0.2 + 0.5 * Math.sqrt(Math.abs(pair.difference) / most) },
        ),
        Plot.cell(
          all.filter((pair) => pair.kind === "not determined"),
          { ...place, fill: "url(#hatch)", stroke: "var(--faint)" },
        ),
        Plot.cell(
          all.filter((pair) => pair.kind !== "better" && pair.kind !== "not determined"),
          { ...place, fill: "none", stroke: "var(--faint)" },
        ),
        Plot.text(all, {
          x: "baseline",
          y: "recommender",
          fontSize: step > 50 ? 11 : 10,
          text: (pair) =>
            step > 40
              ? short(pair.difference)
              : pair.kind !== "better"
                ? ""
                : fill(pair).includes("better")
                  ? "+"
                  : "−",
        }),
      ],
    });
    hatch(plot);
    return plot;
  },
  stops(block, plot) {
    const [x, y] = ["x", "y"].map((name) => plot.scale(name));
    if (!y?.domain.length) return [];
    const stops = cells(block).map((pair) => ({
      x: x.apply(pair.baseline) + x.bandwidth / 2,
      y: y.apply(pair.recommender) + y.bandwidth / 2,
      title: `${pair.recommender} − ${pair.baseline}`,
      lines: [
        ["difference", pair.difference, "signed"],
        [block.interval, [pair.low, pair.high], "interval"],
        ["adjusted p", pair.p_value, "p-value"],
        [pair.finding, "", "text"],
      ],
    }));
    stops.columns = namesOf(block).length - 1;
    return stops;
  },
  table(block) {
    return {
      columns: [
        { name: "pair", format: "text" },
        { name: block.x.name, format: "signed" },
        { name: block.interval, format: "interval" },
        { name: "relative", format: "signed-share" },
        { name: "adjusted p", format: "p-value" },
        { name: "finding", format: "text" },
      ],
      rows: block.pairs.map((pair) => [
        `${pair.recommender} − ${pair.baseline}`,
        pair.difference,
        [pair.low, pair.high],
        pair.relative,
        pair.p_value,
        pair.finding,
      ]),
      about: block.pairs.map((pair) => [pair.recommender, pair.baseline]),
    };
  },
};
