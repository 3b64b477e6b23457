// Charts of what a sampled or corrected metric shows at each rank.

import { correctionTable, moments, term } from "./laws.js";
import { correctionText, designText, metricText, setting, shared } from "./settings.js";

const POINTS = 120;

export function growing(last, count = POINTS) {
  const steps = d3.range(count).map((at) => Math.round(last ** (at / (count - 1))));
  return [...new Set(steps)];
}

export const sampledAs = () => `expected, ${designText()}${correctionText()}`;

export const currentTable = shared(() => correctionTable(setting));

export function momentsByRank() {
  const ranks = growing(setting.n);
  const exact = ranks.map((rank) => term(setting)(rank, setting.n));
  return { ranks, exact, found: moments(currentTable(), setting, ranks) };
}

export function rankChart({ ranks, exact, found }) {
  const curves = [
    { name: "exact", x: ranks, y: exact },
    { name: sampledAs(), x: ranks, y: found.map(({ mean }) => mean) },
  ];
  return linesBlock("true rank", metricText(), curves);
}

export function errorChart({ ranks, exact, found }) {
  const bias = found.map(({ mean }, at) => mean - exact[at]);
  const spread = found.map(({ variance }) => Math.sqrt(variance));
  const error = bias.map((value, at) => Math.hypot(value, spread[at]));
  const curves = [
    { name: "bias", y: bias },
    { name: "standard deviation", y: spread },
    { name: "root mean squared error", y: error },
  ];
  return linesBlock(
    "true rank",
    `error of ${metricText()}`,
    curves.map((curve) => ({ ...curve, x: ranks })),
  );
}

export function linesBlock(x, y, curves, extra = {}) {
  return {
    kind: "lines",
    x: { name: x, log: true, switch: true },
    y: { name: y, log: false },
    curves,
    marks: [],
    recommenders: false,
    ...extra,
  };
}

// The value of each sampled rank, or of each number of draws.
export function tableChart() {
  const values = currentTable();
  const [x, seen] =
    setting.design === "inverse"
      ? ["draws until enough stood above", growing(setting.n - 1).filter((draws) => draws >= setting.hits)]
      : ["sampled rank", d3.range(1, setting.m + 2)];
  return linesBlock(x, `value of ${metricText()}`, [
    { name: `value${correctionText()}`, x: seen, y: seen.map((place) => values[place - 1]) },
  ]);
}
