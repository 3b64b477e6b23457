// The explorer: the reader sets n, m, k, gamma, the metric, the design and the correction, and sees at once what a
// sampled metric shows. Everything is computed here, by laws.js.

import { chartView } from "./charts.js";
import { DATA, el, PAGE } from "./dom.js";
import { errorChart, momentsByRank, rankChart, tableChart } from "./expected.js";
import { twoRecommenders } from "./pairs.js";
import { CORRECTION_NAMES, choice, DESIGN_NAMES, METRIC_NAMES, shared, slider } from "./settings.js";
import { followed } from "./state.js";

const EXPLAINED = [
  [
    "Expected metric by rank",
    "What one relevant item adds, by its true rank: exactly, and on average among the sampled candidates. Where the " +
      "curves differ, a sampled evaluation rewards other ranks than the metric does.",
    rankChart,
  ],
  [
    "Bias and deviation by rank",
    "How far the sampled, or corrected, value is from the exact one on average, and how much it varies from sample to " +
      "sample. A smaller γ has less bias and more variance.",
    errorChart,
  ],
  [
    "What is read in a sample",
    "The value that each sampled rank counts for; under inverse sampling, each number of draws. Corrected values may be " +
      "negative or above 1; only their mean matters.",
    tableChart,
  ],
];

const LEFT_OUT =
  "Inverse sampling has an unbiased estimate of AP (= RR), and of AUC from 2 hits on. Not on this page: ~smooth, " +
  "~monotone, ~em, ~mes and ~mn, which look at all instances together; ~ls with replacement; and the designs that need " +
  "more than ranks, namely by popularity and head-first.";

function live(title, text, make) {
  const chart = followed(() => [make(), title], chartView);
  return el("section", {}, el("h2", {}, title), el("p", {}, text), chart);
}

function start() {
  const byRank = shared(momentsByRank);
  const top = el("header", {}, el("h1", {}, "Explorer"), el("p", { class: "sentence" }, DATA.title));
  const settings = el(
    "div",
    { class: "settings sticky", role: "group", "aria-label": "Settings" },
    choice("metric", "Metric", METRIC_NAMES),
    choice("design", "Design", DESIGN_NAMES),
    choice("correction", "Correction", CORRECTION_NAMES),
    slider("n"),
    slider("m"),
    slider("hits"),
    slider("k"),
    slider("gamma"),
  );
  const charts = EXPLAINED.map(([title, text, make]) => live(title, text, () => make(byRank())));
  PAGE.replaceChildren(top, settings, el("p", { class: "aside" }, LEFT_OUT), ...charts, twoRecommenders());
}

start();
