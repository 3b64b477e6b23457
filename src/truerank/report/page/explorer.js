// The explorer: a conclusion on two recommenders and three steps behind it. The reader sets n, m, k, gamma, the metric,
// the design and the correction, and sees at once what a sampled metric shows. Everything is computed here, by laws.js.

import { chartView } from "./charts.js";
import { DATA, el, PAGE } from "./dom.js";
import { errorChart, momentsByRank, rankChart, tableChart } from "./expected.js";
import { twoRecommenders } from "./pairs.js";
import { CORRECTION_NAMES, choice, DESIGN_NAMES, METRIC_NAMES, shared, slider } from "./settings.js";
import { followAddress, followed } from "./state.js";

const STEPS = {
  beats:
    "What one evaluation reports: the exact metric of both recommenders, and what it is on average among the sampled " +
    "candidates. The deviation is that of the mean over all samples that could be drawn.",
  size:
    "The same metric, not corrected, for every number m of sampled candidates; the exact values stand beyond the break. " +
    "Move m: where the curves cross, the winner changes.",
  correct:
    "A correction uses another value at each sampled rank, so that the average is closer to the exact metric. Choose " +
    "one and see how the conclusion changes. Less bias costs more variance; a smaller γ has less bias.",
};
const EXPLAINED = [
  [
    "Expected metric by rank",
    "What one relevant item contributes, by its true rank: exactly, and on average among the sampled candidates. Where " +
      "the curves differ, a sampled evaluation rewards ranks differently from the metric.",
    rankChart,
  ],
  [
    "Bias and deviation by rank",
    "How far the sampled, or corrected, value is from the exact one on average, and how much it varies from sample to " +
      "sample.",
    errorChart,
  ],
  [
    "Value of each sampled rank",
    "What each sampled rank counts or, under inverse sampling, each number of draws. Corrected values may be " +
      "negative or above 1; only their mean matters.",
    tableChart,
  ],
];

const LEFT_OUT =
  "Inverse sampling has an unbiased estimate of AP (= RR), and of AUC from 2 hits on. Not on this page: ~smooth, " +
  "~monotone, ~em, ~mes and ~mn, which look at all instances together; ~ls with replacement; and the designs that need " +
  "more than ranks, namely by popularity and head-first.";

const section = (title, text, ...parts) =>
  el("section", {}, el("h2", {}, title), text ? el("p", { class: "how" }, text) : null, ...parts);

const controls = (label, ...parts) => el("div", { class: "settings", role: "group", "aria-label": label }, ...parts);

function live(title, text, make) {
  const chart = followed(
    () => [make(), title],
    (block, label) => chartView(block, label, title),
  );
  return el("div", { class: "block" }, el("h3", {}, title), el("p", { class: "how" }, text), chart);
}

function start() {
  const byRank = shared(momentsByRank);
  const two = twoRecommenders();
  const top = el("header", {}, el("h1", {}, DATA.title), two.conclusion);
  const whom = controls(
    "What is compared",
    two.chosenPair,
    choice("metric", "Metric", METRIC_NAMES),
    slider("k"),
    slider("n"),
  );
  const samples = controls(
    "How candidates are sampled",
    slider("m"),
    choice("design", "Design", DESIGN_NAMES),
    slider("hits"),
  );
  const corrections = controls("Correction", choice("correction", "Correction", CORRECTION_NAMES), slider("gamma"));
  const charts = EXPLAINED.map(([title, text, make]) => live(title, text, () => make(byRank())));
  PAGE.replaceChildren(
    top,
    section(el("span", {}, "1. ", two.heading), STEPS.beats, whom, two.problem, two.table, two.ranks),
    section("2. Move m", STEPS.size, samples, two.chart),
    section("3. Correct it", STEPS.correct, corrections, two.again, el("div", { class: "beside" }, charts)),
    section("What is not on this page", LEFT_OUT),
  );
  followAddress();
}

start();
