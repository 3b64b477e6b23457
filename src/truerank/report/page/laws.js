// The laws of sampled ranks, for one relevant item among n candidates, of which m of the n - 1 irrelevant ones are
// sampled. The letters are those of the library and of Krichene & Rendle (KDD 2020): of N = n - 1 irrelevant candidates
// g stand above the relevant item, so that its rank is g + 1; h of the m sampled ones do, so that its sampled rank is
// h + 1.
const LAWS = (() => {
  const NEGLIGIBLE = 2 ** -60;

  // p(h + 1) / p(h): hypergeometric without replacement, binomial with (eq. 15)
  const ratioUp = (h, { g, m, N, replace }) =>
    replace ? ((m - h) * g) / ((h + 1) * (N - g)) : ((m - h) * (g - h)) / ((h + 1) * (N - g - m + h + 1));

  function mode({ g, m, N, replace }) {
    if (replace) return Math.min(Math.floor(((m + 1) * g) / N), m);
    const near = Math.floor(((m + 1) * (g + 1)) / (N + 2));
    return Math.max(Math.min(near, m, g), 0, m - (N - g));
  }

  // The probabilities of h = first, first + 1, ... until they no longer change a sum: walked outwards from the mode,
  // where they are largest, and divided by their sum.
  function law(sample) {
    const { g, m, N } = sample;
    const peak = mode(sample);
    if (g === 0) return { first: 0, p: [1] };
    if (g === N) return { first: m, p: [1] };
    const below = [],
      above = [];
    for (let h = peak, p = 1; h > 0 && (p /= ratioUp(h - 1, sample)) > NEGLIGIBLE; h--) below.push(p);
    for (let h = peak, p = 1; h < m && (p *= ratioUp(h, sample)) > NEGLIGIBLE; h++) above.push(p);
    const all = [...below.reverse(), 1, ...above];
    const total = all.reduce((sum, p) => sum + p, 0);
    return { first: peak - below.length, p: all.map((p) => p / total) };
  }

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

  // The values that are read at h = 0..m: the sampled metric, or a correction of it.
  const TABLES = {
    none: (f, { m }) => Float64Array.from({ length: m + 1 }, (_, h) => f(h + 1, m + 1)),
    // eq. 20: the metric at the unbiased estimate of the rank, rounded down
    rank: (f, { n, m }) => Float64Array.from({ length: m + 1 }, (_, h) => f(Math.floor(((n - 1) * h) / m) + 1, n)),
    bv: biasVariance,
  };

  // eq. 25, with the same weight for every rank: ((1 - gamma) A'A + gamma diag(c)) x = A'b, scaled by the roots of c so
  // that its condition is at most 1 / gamma
  function biasVariance(f, setting) {
    const { n, m, gamma } = setting;
    const { products, c } = normalMatrix(setting);
    const right = new Float64Array(m + 1);
    for (let g = 0; g < n; g++) {
      const { first, p } = law({ ...setting, g, N: n - 1 });
      const value = f(g + 1, n) / n;
      if (value) p.forEach((chance, at) => (right[first + at] += chance * value));
    }
    const system = products.map((row, h) => row.map((product, j) => ((1 - gamma) * product) / Math.sqrt(c[h] * c[j])));
    system.forEach((row, h) => (row[h] += gamma));
    const solution = solve(
      system,
      right.map((value, h) => value / Math.sqrt(c[h])),
    );
    return solution.map((value, h) => value / Math.sqrt(c[h]));
  }

  let kept = null;

  // A'A and c = A'1; kept until n, m or the design change, since the metric and gamma do not matter.
  function normalMatrix({ n, m, replace }) {
    const key = `${n} ${m} ${replace}`;
    if (kept?.key === key) return kept;
    const products = Array.from({ length: m + 1 }, () => new Float64Array(m + 1));
    const c = new Float64Array(m + 1);
    for (let g = 0; g < n; g++) {
      const { first, p } = law({ g, m, N: n - 1, replace });
      for (let a = 0; a < p.length; a++) {
        const row = products[first + a],
          weight = p[a] / n;
        c[first + a] += weight;
        for (let b = 0; b <= a; b++) row[first + b] += weight * p[b];
      }
    }
    for (let h = 0; h <= m; h++) for (let j = 0; j < h; j++) products[j][h] = products[h][j];
    return (kept = { key, products, c });
  }

  // Cholesky's factorisation; the system is overwritten.
  function solve(system, right) {
    const size = right.length,
      x = Float64Array.from(right);
    for (let i = 0; i < size; i++) {
      const row = system[i];
      for (let j = 0; j <= i; j++) {
        const other = system[j];
        let sum = row[j];
        for (let k = 0; k < j; k++) sum -= row[k] * other[k];
        row[j] = i === j ? Math.sqrt(sum) : sum / other[j];
      }
      for (let k = 0; k < i; k++) x[i] -= row[k] * x[k];
      x[i] /= row[i];
    }
    for (let i = size - 1; i >= 0; i--) {
      for (let k = i + 1; k < size; k++) x[i] -= system[k][i] * x[k];
      x[i] /= system[i][i];
    }
    return x;
  }

  const term = ({ metric, k }) => METRICS[metric](k);
  const table = (setting) => TABLES[setting.correction](term(setting), setting);

  // Expectation (eq. 16) and variance of what is read in a table, at each rank.
  function moments(values, { n, m, replace }, ranks) {
    return ranks.map((rank) => {
      const { first, p } = law({ g: rank - 1, m, N: n - 1, replace });
      const mean = p.reduce((sum, chance, at) => sum + chance * values[first + at], 0);
      const variance = p.reduce((sum, chance, at) => sum + chance * (values[first + at] - mean) ** 2, 0);
      return { mean, variance };
    });
  }

  // The same expectation alone, without keeping the probabilities: for many ranks and samples.
  function expectation(values, { n, m, replace }, rank) {
    const sample = { g: rank - 1, m, N: n - 1, replace };
    if (rank === 1 || rank === n) return values[rank === 1 ? 0 : m];
    const peak = mode(sample);
    let total = 1,
      sum = values[peak];
    const add = (h, p) => ((total += p), (sum += p * values[h]), p > NEGLIGIBLE);
    for (let h = peak, p = 1; h > 0 && add(h - 1, (p /= ratioUp(h - 1, sample))); h--);
    for (let h = peak, p = 1; h < m && add(h + 1, (p *= ratioUp(h, sample))); h++);
    return sum / total;
  }

  return { METRICS, law, term, table, moments, expectation };
})();
