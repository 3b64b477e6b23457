// The explorer: the reader sets n, m, k, gamma, the metric, the design and the correction, and sees at once what a
// sampled metric shows. Everything is computed here, by laws.js.
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
    "What is read at each sampled rank",
    "The value that each sampled rank counts for. Corrected values may be negative or above 1; only their mean matters.",
    tableChart,
  ],
];

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
  const settings = el(
    "div",
    { class: "settings sticky", role: "group", "aria-label": "Settings" },
    choice("metric", "Metric", METRIC_NAMES),
    choice("replace", "Design", DESIGN_NAMES, (text) => text === "true"),
    choice("correction", "Correction", CORRECTION_NAMES),
    slider("n"),
    slider("m"),
    slider("k"),
    slider("gamma"),
  );
  const charts = EXPLAINED.map(([title, text, make]) => live(title, text, () => make(byRank())));
  PAGE.replaceChildren(top, settings, ...charts, twoRecommenders());
}

startExplorer();
