// The values that are read where a design shows something: of the sampled metric, or of a correction of it.

import { DESIGNS } from "./designs.js";
import { gramPolynomial, nonNegative, solve } from "./solvers.js";

// As in the library: directions of the sample below the first are taken for rounding, and among tables that fit alike
// the one of least second moment is taken.
const RANK_TOLERANCE = 1e-8;
const TIE_BREAK = 1e-14;

const counts = (m, value) => Float64Array.from({ length: m + 1 }, (_, h) => value(h));
const sampled = (f, { m }) => counts(m, (h) => f(h + 1, m + 1));

// eq. 20: the metric at the unbiased estimate of the rank, rounded down
const rank = (f, { n, m }) => counts(m, (h) => f(Math.floor(((n - 1) * h) / m) + 1, n));

// the same, between the two neighbours of the estimate
const interpolated = (f, { n, m }) =>
  counts(m, (h) => {
    const below = Math.floor(((n - 1) * h) / m);
    const value = f(below + 1, n);
    return value + ((((n - 1) * h) % m) / m) * (f(Math.min(below + 1, n - 1) + 1, n) - value);
  });

// eq. 25, with the same weight for every rank: ((1 - gamma) A'A + gamma diag(c)) x = A'b, scaled by the roots of c so
// that its condition is at most 1 / gamma
function biasVariance(f, setting) {
  const { products, c } = normalMatrix(setting);
  const { gamma } = setting;
  const system = products.map((row, h) => row.map((product, j) => ((1 - gamma) * product) / Math.sqrt(c[h] * c[j])));
  addToDiagonal(system, () => gamma);
  const right = target(f, setting).map((value, h) => value / Math.sqrt(c[h]));
  return solve(system, right).map((value, h) => value / Math.sqrt(c[h]));
}

// Least bias among tables that fall and are never negative: x_h is the sum of steps d_h + d_(h+1) + ..., none negative
function constrained(f, setting) {
  if (setting.metric === "auc") return unbiasedAffine(f, setting);
  const { products, c } = normalMatrix(setting);
  const system = products.map((row) => Float64Array.from(row));
  addToDiagonal(system, (h) => TIE_BREAK * c[h]);
  for (const row of system) sumUp(row);
  for (let h = 1; h < system.length; h++) for (let j = 0; j < system.length; j++) system[h][j] += system[h - 1][j];
  const steps = nonNegative(system, sumUp(target(f, setting)));
  return sumUp(steps.reverse()).reverse();
}

// eq. 22 without replacement. In the Gram polynomials q of h and v of g the law is diagonal, with the singular values
// s: x_h is the sum of mean(f v) / s q(h) over the degrees that the sample determines.
function leastSquares(f, setting) {
  if (setting.metric === "auc") return unbiasedAffine(f, setting);
  const { n, m } = setting;
  const N = n - 1;
  const table = new Float64Array(m + 1);
  for (let degree = 0, square = 1; degree <= m && Math.sqrt(square) > RANK_TOLERANCE; degree++) {
    const v = gramPolynomial(degree, N);
    const q = gramPolynomial(degree, m);
    const part = v.reduce((sum, value, g) => sum + f(g + 1, n) * value, 0) / n / Math.sqrt(square);
    for (let h = 0; h <= m; h++) table[h] += part * q[h];
    square *= ((m - degree) * (N + degree + 2)) / ((N - degree) * (m + degree + 2));
  }
  return table;
}

// h is m g / N on average, so that reading an affine metric at N h / m has no bias
const unbiasedAffine = (f, { n, m }) => counts(m, (h) => f(((n - 1) * h) / m + 1, n));

// Inverse sampling: T / (hits n) for 1 / rank, and N (hits - 1) / (T - 1) for g; exact where all are drawn
function unbiased(f, { n, hits, metric }) {
  const N = n - 1;
  const estimate =
    metric === "auc" ? (t) => f((N * (hits - 1)) / Math.max(t - 1, 1) + 1, n) : (t) => (f(1, n) * t) / (hits * n);
  return Float64Array.from({ length: N + hits }, (_, seen) => (seen < N ? estimate(seen + 1) : f(seen - N + 1, n)));
}

// A'b: the mean of f over the ranks under which each h is seen
function target(f, setting) {
  const right = new Float64Array(setting.m + 1);
  for (let g = 0; g < setting.n; g++) {
    const value = f(g + 1, setting.n) / setting.n;
    if (!value) continue;
    const { first, p } = DESIGNS[setting.design].law(g, setting);
    for (let at = 0; at < p.length; at++) right[first + at] += p[at] * value;
  }
  return right;
}

let kept = null;

// A'A and c = A'1; kept until n, m or the design change, since the metric and gamma do not matter.
function normalMatrix({ n, m, design }) {
  const key = `${n} ${m} ${design}`;
  if (kept?.key === key) return kept;
  const products = Array.from({ length: m + 1 }, () => new Float64Array(m + 1));
  const c = new Float64Array(m + 1);
  for (let g = 0; g < n; g++) {
    const { first, p } = DESIGNS[design].law(g, { n, m });
    for (let a = 0; a < p.length; a++) {
      const row = products[first + a];
      const weight = p[a] / n;
      c[first + a] += weight;
      for (let b = 0; b <= a; b++) row[first + b] += weight * p[b];
    }
  }
  for (let h = 0; h <= m; h++) for (let j = 0; j < h; j++) products[j][h] = products[h][j];
  kept = { key, products, c };
  return kept;
}

function addToDiagonal(system, value) {
  for (let h = 0; h < system.length; h++) system[h][h] += value(h);
}

function sumUp(values) {
  for (let at = 1; at < values.length; at++) values[at] += values[at - 1];
  return values;
}

export const CORRECTIONS = {
  none: sampled,
  rank,
  interpolated,
  bv: biasVariance,
  cls: constrained,
  ls: leastSquares,
  unbiased,
};
