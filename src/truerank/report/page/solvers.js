// Linear algebra for the corrections.
// A Cholesky factorisation that grows by a row and a column at a time, as an active set does.
function growingFactor(entry) {
  const chosen = [];
  const rows = [];
  const append = (at) => {
    const row = new Float64Array(chosen.length + 1);
    chosen.push(at);
    for (let j = 0; j < row.length; j++) {
      let sum = entry(at, chosen[j]);
      const other = j < rows.length ? rows[j] : row;
      for (let k = 0; k < j; k++) sum -= row[k] * other[k];
      row[j] = j === row.length - 1 ? Math.sqrt(sum) : sum / other[j];
    }
    rows.push(row);
  };
  const keep = (wanted) => {
    const from = chosen.findIndex((at) => !wanted(at));
    if (from < 0) return;
    const rest = chosen.splice(from).filter(wanted);
    rows.length = from;
    rest.forEach(append);
  };
  const solve = (right) => {
    const x = Float64Array.from(chosen, (at) => right[at]);
    for (let i = 0; i < x.length; i++) {
      for (let k = 0; k < i; k++) x[i] -= rows[i][k] * x[k];
      x[i] /= rows[i][i];
    }
    for (let i = x.length - 1; i >= 0; i--) {
      for (let k = i + 1; k < x.length; k++) x[i] -= rows[k][i] * x[k];
      x[i] /= rows[i][i];
    }
    return x;
  };
  return { chosen, append, keep, solve };
}

// x of a positive definite system.
export function solve(system, right) {
  const factor = growingFactor((i, j) => system[i][j]);
  for (let at = 0; at < right.length; at++) factor.append(at);
  return factor.solve(right);
}

// The x >= 0 of least x'Gx / 2 - q'x, by the active set method of Lawson and Hanson.
export function nonNegative(system, right) {
  const x = new Float64Array(right.length);
  const least = 1e-15 * Math.max(...right.map(Math.abs));
  const factor = growingFactor((i, j) => system[i][j]);
  const refused = new Set();
  const gain = (at) => factor.chosen.reduce((sum, other) => sum - system[at][other] * x[other], right[at]);
  const best = () => {
    const free = [...x.keys()].filter((at) => x[at] === 0 && !refused.has(at));
    const at = d3.greatest(free, (a, b) => gains[a] - gains[b]);
    return at !== undefined && gains[at] > least ? at : null;
  };
  let gains = right;
  for (let entering = best(); entering !== null; entering = best()) {
    factor.append(entering);
    let next = factor.solve(right);
    if (next[next.length - 1] <= 0) {
      factor.keep((at) => at !== entering);
      refused.add(entering);
      continue;
    }
    refused.clear();
    // as far towards the solution as no value becomes negative; those that become 0 leave
    while (next.some((value) => value <= 0)) {
      const share = Math.min(
        ...factor.chosen.map((at, place) => (next[place] <= 0 ? x[at] / (x[at] - next[place]) : 1)),
      );
      for (const [place, at] of factor.chosen.entries()) {
        x[at] += share * (next[place] - x[at]);
        if (next[place] <= 0 && x[at] < 1e-17) x[at] = 0;
      }
      factor.keep((at) => x[at] > 0);
      next = factor.solve(right);
    }
    for (const [place, at] of factor.chosen.entries()) x[at] = next[place];
    gains = Float64Array.from(x, (_, at) => gain(at));
  }
  return x;
}

// The Gram polynomial of a degree on 0..N, with mean square 1: y(0) > 0, and (x + 1) (N - x) (y(x + 1) - y(x)) sums up
// -degree (degree + 1) y. Walked from the end to the middle, along which it grows, and mirrored.
export function gramPolynomial(degree, N) {
  const y = new Float64Array(N + 1);
  const middle = Math.floor(N / 2);
  const parity = degree % 2 ? -1 : 1;
  y[0] = 1;
  for (let x = 0, flow = 0; x < middle; x++) {
    flow -= degree * (degree + 1) * y[x];
    y[x + 1] = y[x] + flow / ((x + 1) * (N - x));
  }
  for (let x = middle + 1; x <= N; x++) y[x] = parity * y[N - x];
  const size = Math.sqrt(y.reduce((sum, value) => sum + value * value, 0) / (N + 1));
  return y.map((value) => value / size);
}
