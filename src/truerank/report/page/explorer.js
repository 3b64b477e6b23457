// The explorer: the reader sets n, m, k, gamma, the metric, the design and the correction, and sees at once what a sampled
// metric shows. Everything is computed here, by laws.js.
const METRIC_NAMES = {
  "recall@k": "Recall@k", "ndcg@k": "NDCG@k", "ap@k": "AP@k", "precision@k": "Precision@k", ap: "AP (= RR)", ndcg: "NDCG", auc: "AUC",
};
const DESIGN_NAMES = { false: "without replacement", true: "with replacement (eq. 15)" };
const CORRECTION_NAMES = { none: "none: the sampled metric", rank: "rank estimate (eq. 20)", bv: "bias-variance (eq. 25)" };
const LIMITS = { n: [2, 20000], m: [1, 500], k: [1, 1000], gamma: [0.001, 1] };
// When a setting matters; otherwise it is shown faintly.
const MATTERS = { k: () => setting.metric.endsWith("@k"), gamma: () => setting.correction === "bv" };
const HELP = {
  n: "candidates, one of them relevant",
  m: "sampled irrelevant candidates",
  k: "cut-off of the metric",
  gamma: "weight of the variance",
};
const setting = { n: 10000, m: 100, k: 10, gamma: 0.1, metric: "ap", replace: false, correction: "none" };
const POINTS = 120;
const MOST_TYPED = 200;

const metricText = () => METRIC_NAMES[setting.metric].replace("@k", `@${setting.k}`);
const correctionText = () => (setting.correction === "none" ? "" : setting.correction === "bv" ? `, bv(${setting.gamma})` : ", rank estimate");

function growing(last, count = POINTS) {
  const steps = d3.range(count).map((at) => Math.round(last ** (at / (count - 1))));
  return [...new Set(steps)];
}

// Sliders move by factors, since what matters is the order of magnitude.
function slider(name) {
  const [low, high] = LIMITS[name];
  const toValue = (place) => low * (high / low) ** (place / 1000);
  const toPlace = (value) => (1000 * Math.log(value / low)) / Math.log(high / low);
  const tidy = (value) => (name === "gamma" ? Number(value.toPrecision(2)) : Math.round(value));
  const range = el("input", { type: "range", min: 0, max: 1000, step: 1, id: `${name}-slider`, "aria-label": `${name}, ${HELP[name]}` });
  const number = el("input", { type: "number", min: low, max: high, step: name === "gamma" ? "any" : 1, id: name, "aria-label": name });
  const show = () => {
    number.value = setting[name];
    range.value = toPlace(setting[name]);
    range.setAttribute("aria-valuetext", setting[name]);
    view.toggleAttribute("data-off", !(MATTERS[name]?.() ?? true));
  };
  const take = (value) => Number.isFinite(value) && set({ [name]: Math.max(low, Math.min(high, value)) });
  range.addEventListener("input", () => take(tidy(toValue(+range.value))));
  number.addEventListener("change", () => take(name === "gamma" ? +number.value : Math.round(+number.value)));
  const label = el("label", { for: name }, el("b", {}, name === "gamma" ? "γ" : name), ` ${HELP[name]}`);
  const view = el("div", { class: "setting" }, label, range, number);
  follow(show);
  return view;
}

function choice(name, label, names, read = (value) => value) {
  const options = Object.entries(names).map(([value, text]) => el("option", { value }, text));
  const select = el("select", { id: name, onchange: () => set({ [name]: read(select.value) }) }, options);
  follow(() => (select.value = String(setting[name])));
  return el("div", { class: "setting" }, el("label", { for: name }, label), select);
}

// No more candidates are sampled than there are, and none is cut off beyond the last rank.
function set(changes) {
  Object.assign(setting, changes);
  if (!setting.replace) setting.m = Math.min(setting.m, setting.n - 1);
  setting.k = Math.min(setting.k, setting.n);
  change({});
}

// A function that computes again only after what it depends on has changed.
function shared(compute, depends = () => setting) {
  let key = null, value = null;
  return () => {
    const now = JSON.stringify(depends());
    if (now !== key) [key, value] = [now, compute()];
    return value;
  };
}

const sampledAs = () => `expected, m = ${setting.m}${correctionText()}`;

function momentsByRank() {
  const ranks = growing(setting.n);
  const exact = ranks.map((rank) => LAWS.term(setting)(rank, setting.n));
  return { ranks, exact, found: LAWS.moments(LAWS.table(setting), setting, ranks) };
}

function rankChart({ ranks, exact, found }) {
  const curves = [{ name: "exact", x: ranks, y: exact }, { name: sampledAs(), x: ranks, y: found.map(({ mean }) => mean) }];
  return linesBlock("true rank", metricText(), curves);
}

function errorChart({ ranks, exact, found }) {
  const bias = found.map(({ mean }, at) => mean - exact[at]);
  const spread = found.map(({ variance }) => Math.sqrt(variance));
  const error = bias.map((value, at) => Math.hypot(value, spread[at]));
  const curves = [{ name: "bias", y: bias }, { name: "standard deviation", y: spread }, { name: "root mean squared error", y: error }];
  return linesBlock("true rank", `error of ${metricText()}`, curves.map((curve) => ({ ...curve, x: ranks })));
}

function linesBlock(x, y, curves, extra = {}) {
  return { kind: "lines", x: { name: x, log: true, switch: true }, y: { name: y, log: false }, curves, marks: [], recommenders: false, ...extra };
}

function tableChart() {
  const values = LAWS.table(setting);
  const ranks = d3.range(1, setting.m + 2);
  return linesBlock("sampled rank", `what is read for ${metricText()}`, [{ name: `value${correctionText()}`, x: ranks, y: [...values] }]);
}

// Two recommenders, as lists of [rank, how often].
const pair = {};

function readRanks(text) {
  const ranks = text.split(/[\s,;]+/).filter(Boolean).map(Number);
  const wrong = ranks.find((rank) => !Number.isInteger(rank) || rank < 1 || rank > setting.n);
  if (!ranks.length) throw new Error("Type at least one rank.");
  if (wrong !== undefined) throw new Error(`Ranks are whole numbers from 1 to n = ${setting.n}.`);
  return d3.rollups(ranks, (all) => all.length, (rank) => rank).sort((a, b) => a[0] - b[0]);
}

function meanOver(counts, values) {
  const total = d3.sum(counts, ([, times]) => times);
  return d3.sum(counts, ([, times], at) => times * values[at]) / total;
}

function study(counts, sample = setting, values = LAWS.table(sample)) {
  const found = LAWS.moments(values, sample, counts.map(([rank]) => rank));
  const total = d3.sum(counts, ([, times]) => times);
  return {
    exact: meanOver(counts, counts.map(([rank]) => LAWS.term(sample)(rank, sample.n))),
    expected: meanOver(counts, found.map(({ mean }) => mean)),
    deviation: Math.sqrt(d3.sum(counts, ([, times], at) => times * found[at].variance)) / total,
    total,
  };
}

// Chance that a normal variable is below a value (Abramowitz & Stegun 7.1.26, to 1e-7)
function normalBelow(value) {
  const t = 1 / (1 + 0.3275911 * (Math.abs(value) / Math.SQRT2));
  const tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * Math.exp(-value * value / 2);
  return value < 0 ? tail / 2 : 1 - tail / 2;
}

function verdict(studies) {
  const [a, b] = Object.keys(studies);
  const exact = studies[b].exact - studies[a].exact;
  const [better, worse] = exact > 0 ? [b, a] : [a, b];
  const gap = studies[better].expected - studies[worse].expected;
  if (exact === 0) return `${a} and ${b} are equal on ${metricText()}. With ${setting.m} sampled candidates ${gap < 0 ? worse : better} is ahead by ${decimals(Math.abs(gap))} on average.`;
  const deviation = Math.hypot(studies[better].deviation, studies[worse].deviation);
  const chance = deviation ? normalBelow(gap / deviation) : gap > 0 ? 1 : gap < 0 ? 0 : 0.5;
  const share = chance > 0.995 ? "nearly all" : chance < 0.005 ? "hardly any" : `about ${Math.round(100 * chance)} %`;
  const start = `${better} is better than ${worse} on ${metricText()} by ${decimals(Math.abs(exact))}. `;
  const place = gap < 0 ? `behind by ${decimals(-gap)}` : `ahead by ${decimals(gap)}`;
  return `${start}With ${setting.m} sampled candidates it is ${place} on average, and ahead in ${share} of all samples.`;
}

function pairTable(studies) {
  const columns = ["recommender", "instances", "exact", sampledAs(), "standard deviation"].map((name, at) => ({ name, format: at === 0 ? "text" : at === 1 ? "count" : "number" }));
  return { columns, rows: Object.entries(studies).map(([name, { exact, expected, deviation, total }]) => [name, total, exact, expected, deviation]) };
}

// The uncorrected metric of both at growing m, as in Figure 2 of the paper; the sliders of m and gamma do not change it.
const curvesByM = shared(() => {
  const sizes = growing(Math.min(setting.n - 1, 2000), 40);
  const samples = sizes.map((m) => ({ ...setting, m, correction: "none" }));
  const tables = samples.map(LAWS.table);
  const f = LAWS.term(setting);
  return Object.entries(pair).map(([name, counts]) => ({
    name,
    x: sizes,
    y: samples.map((sample, at) => meanOver(counts, counts.map(([rank]) => LAWS.expectation(tables[at], sample, rank)))),
    end: meanOver(counts, counts.map(([rank]) => f(rank, setting.n))),
  }));
}, () => [setting.n, setting.k, setting.metric, setting.replace, pair]);

function pairChart() {
  const marks = [{ x: setting.m, text: `m = ${setting.m}` }];
  return linesBlock("sampled candidates m", `expected ${metricText()}, uncorrected`, curvesByM(), { marks });
}

function ranksInput(name, onchange) {
  const area = el("textarea", { id: `ranks-${name}`, rows: 2, spellcheck: "false", oninput: () => onchange() });
  return { area, view: el("div", { class: "setting wide" }, el("label", { for: `ranks-${name}` }, el("b", {}, name), " ranks of the relevant items"), area) };
}

function twoRecommenders() {
  const inputs = ["first", "second"].map((name) => ranksInput(name, () => ((examples.value = "typed"), typed())));
  const problem = el("p", { class: "problem", role: "alert" });
  const result = el("p", { class: "verdict", role: "status" });
  const holder = el("div", {});
  const options = ["typed", ...Object.keys(DATA.pairs)].map((name) => el("option", { value: name }, name));
  const examples = el("select", { id: "pair", onchange: () => DATA.pairs[examples.value] && load(examples.value) }, options);
  let names = ["first", "second"], given = [[], []], views = null;

  const draw = () => {
    try {
      const counts = given.map((ranks) => (typeof ranks === "string" ? readRanks(ranks) : ranks));
      Object.keys(pair).forEach((name) => delete pair[name]);
      names.forEach((name, at) => (pair[name] = counts[at].filter(([rank]) => rank <= setting.n)));
      if (Object.values(pair).some((own) => !own.length)) throw new Error(`All ranks are beyond n = ${setting.n}.`);
      const left = d3.sum(counts.flat().filter(([rank]) => rank > setting.n), ([, times]) => times);
      problem.textContent = left ? `${left} ${left === 1 ? "rank" : "ranks"} beyond n = ${setting.n} left out.` : "";
    } catch (error) {
      problem.textContent = error.message;
      return;
    }
    const values = LAWS.table(setting);
    const studies = Object.fromEntries(Object.entries(pair).map(([name, counts]) => [name, study(counts, setting, values)]));
    result.textContent = verdict(studies);
    const blocks = [[pairTable(studies), "Two recommenders"], [pairChart(), "Expected metric by number of sampled candidates"]];
    if (views) views.forEach((view, at) => view.update(blocks[at][0]));
    else holder.replaceChildren(...(views = [tableView(...blocks[0]), chartView(...blocks[1])]));
  };
  const typed = () => ((names = ["first", "second"]), (given = inputs.map(({ area }) => area.value)), draw());
  const load = (name) => {
    const example = DATA.pairs[name];
    if (example.n) set({ n: Math.min(LIMITS.n[1], example.n) });
    names = Object.keys(example.ranks);
    given = Object.values(example.ranks);
    given.forEach((ranks, at) => {
      const total = d3.sum(ranks, ([, times]) => times);
      inputs[at].area.value = total > MOST_TYPED ? "" : ranks.flatMap(([rank, times]) => Array(times).fill(rank)).join(" ");
      inputs[at].area.placeholder = `${total.toLocaleString("en")} ranks of ${names[at]}`;
    });
    draw();
  };
  examples.value = Object.keys(DATA.pairs)[0];
  load(examples.value);
  follow(draw);
  const start = el("div", { class: "setting" }, el("label", { for: "pair" }, "Recommenders"), examples);
  return el("section", {}, el("h2", {}, "What two recommenders would look like"),
    el("p", {}, "Choose the paper's example, or type the ranks of two recommenders' relevant items, one per instance. The deviation is that of the mean over all samples that could be drawn."),
    el("div", { class: "settings" }, start, inputs.map(({ view }) => view)), problem, result, holder);
}

function live(title, text, make) {
  let view = null;
  const holder = el("div", { class: "block" });
  follow(() => {
    const block = make();
    if (view) view.update(block);
    else holder.replaceChildren((view = chartView(block, title)));
  });
  return el("section", {}, el("h2", {}, title), el("p", {}, text), holder);
}

function startExplorer() {
  const byRank = shared(momentsByRank);
  const top = el("header", {}, el("h1", {}, "Explorer"), el("p", { class: "sentence" }, DATA.title));
  const settings = el("div", { class: "settings sticky", role: "group", "aria-label": "Settings" },
    choice("metric", "Metric", METRIC_NAMES), choice("replace", "Design", DESIGN_NAMES, (text) => text === "true"),
    choice("correction", "Correction", CORRECTION_NAMES), slider("n"), slider("m"), slider("k"), slider("gamma"));
  PAGE.replaceChildren(top, settings,
    live("Expected metric by rank", "What one relevant item adds, by its true rank: exactly, and on average among the sampled candidates. Where the two curves differ, a sampled evaluation rewards other ranks than the metric does.", () => rankChart(byRank())),
    live("Bias and deviation by rank", "How far the sampled, or corrected, value is from the exact one on average, and how much it varies from sample to sample. A smaller γ has less bias and more variance.", () => errorChart(byRank())),
    live("What is read at each sampled rank", "The value that each sampled rank counts for. Corrected values may be negative or above 1; only their mean matters.", tableChart),
    twoRecommenders());
}

startExplorer();
