// What two recommenders would look like: the paper's, the reader's own, or ranks that are typed.

import { chartView } from "./charts.js";
import { DATA, el } from "./dom.js";
import { currentTable, growing, linesBlock, sampledAs } from "./expected.js";
import { correctionTable, draws, expectation, moments, term } from "./laws.js";
import { decimals } from "./numbers.js";
import { LIMITS, metricText, set, setting, shared } from "./settings.js";
import { follow, inAddress, writeAddress } from "./state.js";
import { tableView } from "./tables.js";

const MOST_TYPED = 200;

// Two recommenders: their names, and the counts of their ranks as lists of [rank, how often].
let pair = [];

function readRanks(text) {
  const ranks = text
    .split(/[\s,;]+/)
    .filter(Boolean)
    .map(Number);
  const wrong = ranks.find((rank) => !Number.isInteger(rank) || rank < 1 || rank > setting.n);
  if (!ranks.length) throw new Error("Type at least one rank.");
  if (wrong !== undefined) throw new Error(`Ranks are whole numbers from 1 to n = ${setting.n}.`);
  return d3
    .rollups(
      ranks,
      (all) => all.length,
      (rank) => rank,
    )
    .sort((a, b) => a[0] - b[0]);
}

const sizeOf = (counts) => d3.sum(counts, ([, times]) => times);

// The mean of value(rank) over all ranks; its second argument is the place of the rank in the list.
function meanOver(counts, value) {
  return d3.sum(counts, ([rank, times], at) => times * value(rank, at)) / sizeOf(counts);
}

function study({ name, counts }) {
  const ranks = counts.map(([rank]) => rank);
  const found = moments(currentTable(), setting, ranks);
  const total = sizeOf(counts);
  return {
    name,
    exact: meanOver(counts, (rank) => term(setting)(rank, setting.n)),
    expected: meanOver(counts, (_, at) => found[at].mean),
    deviation: Math.sqrt(d3.sum(counts, ([, times], at) => times * found[at].variance)) / total,
    draws: meanOver(counts, (rank) => draws(setting, rank)),
    total,
  };
}

// Chance that a normal variable is below a value (Abramowitz & Stegun 7.1.26, to 1e-7)
function normalBelow(value) {
  const t = 1 / (1 + 0.3275911 * (Math.abs(value) / Math.SQRT2));
  const tail =
    t *
    (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) *
    Math.exp((-value * value) / 2);
  return value < 0 ? tail / 2 : 1 - tail / 2;
}

function verdict([a, b]) {
  const exact = b.exact - a.exact;
  const [better, worse] = exact > 0 ? [b, a] : [a, b];
  const gap = better.expected - worse.expected;
  const sampled =
    setting.design === "inverse"
      ? `With candidates drawn until ${setting.hits} stand above the relevant item`
      : `With ${setting.m} sampled candidates`;
  if (exact === 0) {
    const ahead = gap < 0 ? worse : better;
    const place = `${ahead.name} is ahead by ${decimals(Math.abs(gap))} on average.`;
    return `${a.name} and ${b.name} are equal on ${metricText()}. ${sampled} ${place}`;
  }
  const deviation = Math.hypot(better.deviation, worse.deviation);
  const chance = deviation ? normalBelow(gap / deviation) : gap > 0 ? 1 : gap < 0 ? 0 : 0.5;
  const share = chance > 0.995 ? "nearly all" : chance < 0.005 ? "hardly any" : `about ${Math.round(100 * chance)} %`;
  const start = `${better.name} is better than ${worse.name} on ${metricText()} by ${decimals(Math.abs(exact))}.`;
  const place = gap < 0 ? `behind by ${decimals(-gap)}` : `ahead by ${decimals(gap)}`;
  return `${start} ${sampled} it is ${place} on average, and ahead in ${share} of all samples.`;
}

function pairTable(studies) {
  const columns = [
    { name: "recommender", format: "text" },
    { name: "instances", format: "count" },
    { name: "exact", format: "number" },
    { name: sampledAs(), format: "number" },
    { name: "standard deviation", format: "number" },
    { name: "draws per instance", format: "count" },
  ];
  const rows = studies.map(({ name, total, exact, expected, deviation, draws }) => [
    name,
    total,
    exact,
    expected,
    deviation,
    draws,
  ]);
  return { columns, rows };
}

const uniformDesign = () => (setting.design === "inverse" ? "without" : setting.design);

// The uncorrected metric of both at growing m, as in Figure 2 of the paper; the sliders of m and gamma do not change it.
const curvesByM = shared(
  () => {
    const sizes = growing(Math.min(setting.n - 1, 2000), 40);
    const design = uniformDesign();
    const samples = sizes.map((m) => ({ ...setting, design, m, correction: "none" }));
    const tables = samples.map(correctionTable);
    const f = term(setting);
    return pair.map(({ name, counts }) => ({
      name,
      x: sizes,
      y: samples.map((sample, at) => meanOver(counts, (rank) => expectation(tables[at], sample, rank))),
      end: meanOver(counts, (rank) => f(rank, setting.n)),
    }));
  },
  () => [setting.n, setting.k, setting.metric, uniformDesign(), pair],
);

function pairChart() {
  const marks = setting.design === "inverse" ? [] : [{ x: setting.m, text: `m = ${setting.m}`, labelled: true }];
  return linesBlock("sampled candidates m", `expected ${metricText()}, uncorrected`, curvesByM(), { marks });
}

function ranksInput(name, onchange) {
  const area = el("textarea", { id: `ranks-${name}`, rows: 2, spellcheck: "false", oninput: () => onchange() });
  return {
    area,
    view: el(
      "div",
      { class: "setting" },
      el("label", { for: `ranks-${name}` }, el("b", {}, name), " ranks of the relevant items"),
      area,
    ),
  };
}

// Reads typed ranks, leaves out those beyond n, and says so.
function takePair(given, problem) {
  try {
    const read = given.map(({ name, ranks }) => ({
      name,
      counts: typeof ranks === "string" ? readRanks(ranks) : ranks,
    }));
    const left = sizeOf(read.flatMap(({ counts }) => counts).filter(([rank]) => rank > setting.n));
    pair = read.map(({ name, counts }) => ({ name, counts: counts.filter(([rank]) => rank <= setting.n) }));
    if (pair.some(({ counts }) => !counts.length)) throw new Error(`All ranks are beyond n = ${setting.n}.`);
    problem.textContent = left ? `${left} ${left === 1 ? "rank" : "ranks"} beyond n = ${setting.n} left out.` : "";
    return true;
  } catch (error) {
    problem.textContent = error.message;
    return false;
  }
}

// Shows a chosen pair in the fields, unless it has too many ranks to type.
function fill(area, { name, ranks }) {
  const total = sizeOf(ranks);
  area.value = total > MOST_TYPED ? "" : ranks.flatMap(([rank, times]) => Array(times).fill(rank)).join(" ");
  area.placeholder = `${total.toLocaleString("en")} ranks of ${name}`;
}

// All pairs of the reader's own recommenders, then those of the paper's.
const PAIRS = Object.entries(DATA.studies).flatMap(([owner, all]) =>
  all.flatMap((one, at) =>
    all.slice(at + 1).map((other) => ({ name: `${owner}: ${one.name} and ${other.name}`, recommenders: [one, other] })),
  ),
);
const TYPED = ["first", "second"];

// Who looks better in the sample, as the heading of the first step.
function beats([a, b]) {
  if (a.expected === b.expected) return `${a.name} and ${b.name} look alike`;
  const [ahead, behind] = a.expected > b.expected ? [a, b] : [b, a];
  return `${ahead.name} beats ${behind.name}`;
}

// The conclusion, the heading, the controls, the table and the chart of two recommenders, which follow the settings.
export function twoRecommenders() {
  const problem = el("p", { id: "pair-problem", class: "problem", role: "alert" });
  const conclusion = el("p", { class: "sentence verdict", role: "status" });
  const again = el("p", { class: "finding" });
  const heading = el("span", {});
  const [table, chart] = [el("div", {}), el("div", {})];
  let views = null;
  const draw = (given) => {
    if (!takePair(given, problem)) return;
    const studies = pair.map(study);
    conclusion.textContent = verdict(studies);
    again.textContent = conclusion.textContent;
    heading.textContent = beats(studies);
    const blocks = [pairTable(studies), pairChart()];
    if (views) {
      for (const [at, view] of views.entries()) view.update(blocks[at]);
      return;
    }
    views = [
      tableView(blocks[0], "Two recommenders"),
      chartView(blocks[1], "Expected metric by number of sampled candidates", "by-m"),
    ];
    table.append(views[0]);
    chart.append(views[1]);
  };
  const inputs = TYPED.map((name) => ranksInput(name, () => type()));
  const options = PAIRS.map(({ name }, at) => el("option", { value: at }, name));
  const choose = () => {
    if (select.value === "typed") ranks.open = true;
    else load(PAIRS[select.value]);
  };
  const select = el("select", { id: "pair", onchange: choose }, options, el("option", { value: "typed" }, "typed"));
  let given = PAIRS[0].recommenders;
  const type = () => {
    select.value = "typed";
    given = inputs.map(({ area }, at) => ({ name: TYPED[at], ranks: area.value }));
    draw(given);
    writeAddress();
  };
  const largest = ({ recommenders }) =>
    Math.min(
      LIMITS.n[1],
      d3.max(recommenders, ({ n }) => n),
    );
  const show = (chosenPair) => {
    given = chosenPair.recommenders;
    for (const [at, one] of given.entries()) fill(inputs[at].area, one);
  };
  const load = (chosenPair) => {
    show(chosenPair);
    set({ n: largest(chosenPair) });
  };
  load(PAIRS[0]);
  follow(() => draw(given));
  inAddress({
    write: () =>
      select.value === "typed"
        ? inputs.map(({ area }, at) => [TYPED[at], area.value])
        : select.value === "0"
          ? []
          : [["pair", PAIRS[select.value].name]],
    read(pairs) {
      const named = PAIRS.findIndex(({ name }) => name === pairs.get("pair"));
      if (TYPED.every((name) => pairs.has(name))) {
        for (const [at, name] of TYPED.entries()) inputs[at].area.value = pairs.get(name);
        type();
      } else {
        select.value = Math.max(0, named);
        show(PAIRS[select.value]);
        if (!pairs.has("n")) set({ n: largest(PAIRS[select.value]) });
      }
    },
  });
  const chosenPair = el("div", { class: "setting" }, el("label", { for: "pair" }, "Recommenders"), select);
  const ranks = el(
    "details",
    {},
    el("summary", {}, "Type ranks of your own, or look at these"),
    el(
      "div",
      { class: "settings" },
      inputs.map(({ view }) => view),
    ),
  );
  return { conclusion, again, heading, chosenPair, problem, ranks, table, chart };
}
