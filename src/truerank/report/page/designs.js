// The laws of what a design shows, for one relevant item. The letters are those of the library and of Krichene & Rendle
// (KDD 2020): of N = n - 1 irrelevant candidates g stand above the relevant item, so that its rank is g + 1.

const NEGLIGIBLE = 2 ** -60;

// The probabilities of first, first + 1, ... until they no longer change a sum: walked outwards from the mode, where
// they are largest, and divided by their sum. `up` is p(x + 1) / p(x).
function walked(peak, [low, high], up) {
  const below = [];
  const above = [];
  for (let x = peak, p = 1; x > low; x--) {
    p /= up(x - 1);
    if (p <= NEGLIGIBLE) break;
    below.push(p);
  }
  for (let x = peak, p = 1; x < high; x++) {
    p *= up(x);
    if (p <= NEGLIGIBLE) break;
    above.push(p);
  }
  const all = [...below.reverse(), 1, ...above];
  const total = all.reduce((sum, p) => sum + p, 0);
  return { first: peak - below.length, p: all.map((p) => p / total) };
}

// m candidates are sampled, of which h stand above. What is seen is h, from 0 to m.
function uniform({ mode, up }) {
  const peak = (g, N, m) => (g === 0 ? 0 : g === N ? m : mode(g, N, m));
  const range = (g, N, m) => (g === 0 ? [0, 0] : g === N ? [m, m] : [0, m]);
  return {
    law: (g, { n, m }) => walked(peak(g, n - 1, m), range(g, n - 1, m), (h) => up(h, g, n - 1, m)),
    // an expectation alone, without keeping the probabilities: for many ranks and samples
    expectation(values, g, { n, m }) {
      const N = n - 1;
      const start = peak(g, N, m);
      const [low, high] = range(g, N, m);
      let total = 1;
      let sum = values[start];
      for (let h = start, p = 1; h > low && p > NEGLIGIBLE; h--) {
        p /= up(h - 1, g, N, m);
        total += p;
        sum += p * values[h - 1];
      }
      for (let h = start, p = 1; h < high && p > NEGLIGIBLE; h++) {
        p *= up(h, g, N, m);
        total += p;
        sum += p * values[h + 1];
      }
      return sum / total;
    },
    draws: (_, { m }) => m,
  };
}

// hypergeometric
const without = uniform({
  mode: (g, N, m) => Math.max(Math.min(Math.floor(((m + 1) * (g + 1)) / (N + 2)), m, g), 0, m - (N - g)),
  up: (h, g, N, m) => ((m - h) * (g - h)) / ((h + 1) * (N - g - m + h + 1)),
});

// binomial (eq. 15)
const replaced = uniform({
  mode: (g, N, m) => Math.min(Math.floor(((m + 1) * g) / N), m),
  up: (h, g, N, m) => ((m - h) * g) / ((h + 1) * (N - g)),
});

// Candidates are drawn without replacement until `hits` stand above: after T draws, which has a negative
// hypergeometric law, or never if fewer exist; then all are drawn, and the rank is known. What is seen is T - 1, from 0
// to N - 1, or N + g.
const inverse = {
  law(g, { n, hits }) {
    const N = n - 1;
    if (g < hits) return { first: N + g, p: [1] };
    const last = N - g + hits;
    const mode = g === 1 ? hits : Math.min(Math.floor(((hits - 1) * N) / (g - 1)) + 1, last);
    const { first, p } = walked(mode, [hits, last], (t) => (t * (last - t)) / ((t - hits + 1) * (N - t)));
    return { first: first - 1, p };
  },
  draws: (g, { n, hits }) => (g < hits ? n - 1 : (hits * n) / (g + 1)),
};

export const DESIGNS = { without, replaced, inverse };
