// What a metric shows under a design, with a correction or without: its expectation and variance at each rank.

import { CORRECTIONS } from "./corrections.js";
import { DESIGNS } from "./designs.js";

// What a relevant item adds at a rank among n candidates (eq. 2 to 6).
const METRICS = {
  auc: () => (rank, n) => 1 - (rank - 1) / (n - 1),
  ap: () => (rank) => 1 / rank,
  ndcg: () => (rank) => 1 / Math.log2(rank + 1),
  "recall@k": (k) => (rank) => (rank <= k ? 1 : 0),
  "precision@k": (k) => (rank) => (rank <= k ? 1 / k : 0),
  "ap@k": (k) => (rank) => (rank <= k ? 1 / rank : 0),
  "ndcg@k": (k) => (rank) => (rank <= k ? 1 / Math.log2(rank + 1) : 0),
};

export const term = ({ metric, k }) => METRICS[metric](k);
const law = (rank, setting) => DESIGNS[setting.design].law(rank - 1, setting);
export const correctionTable = (setting) => CORRECTIONS[setting.correction](term(setting), setting);

// Expectation (eq. 16) and variance of what is read in a table, at each rank.
export function moments(values, setting, ranks) {
  return ranks.map((rank) => {
    const { first, p } = law(rank, setting);
    const mean = p.reduce((sum, chance, at) => sum + chance * values[first + at], 0);
    const variance = p.reduce((sum, chance, at) => sum + chance * (values[first + at] - mean) ** 2, 0);
    return { mean, variance };
  });
}

// The same expectation alone, under uniform sampling.
export const expectation = (values, setting, rank) => DESIGNS[setting.design].expectation(values, rank - 1, setting);

// How many candidates are scored on average.
export const draws = (setting, rank) => DESIGNS[setting.design].draws(rank - 1, setting);
