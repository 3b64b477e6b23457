// The report: a sentence, what the reader can choose, and the sections.

import { chartView, legendOf } from "./charts.js";
import { DATA, el, PAGE } from "./dom.js";
import { change, chosen, followed, hide } from "./state.js";
import { tableView } from "./tables.js";

const VIEWS = {
  table: tableView,
  lines: chartView,
  bars: chartView,
  dots: chartView,
  paragraph: (block) => el("p", {}, block.text),
  facts: (block) =>
    el(
      "dl",
      {},
      Object.entries(block.facts).flatMap(([term, fact]) => [el("dt", {}, term), el("dd", {}, fact)]),
    ),
};

const metricName = (metric) => DATA.metrics[metric] ?? metric;

// A block is drawn again if the reader chooses something else; one by metric is that of the chosen metric.
function blockView(block, title) {
  const byMetric = block.kind === "by-metric";
  const current = () =>
    byMetric ? [block.blocks[chosen.metric], `${title}, ${metricName(chosen.metric)}`] : [block, title];
  return followed(current, (now, label) => VIEWS[now.kind](now, label));
}

function sectionView(section, at) {
  const id = `section-${at + 1}`;
  const notes = section.notes.length
    ? el(
        "ul",
        { class: "notes" },
        section.notes.map((note) => el("li", {}, note)),
      )
    : null;
  const blocks = section.blocks.map((block) => blockView(block, section.title));
  const text = section.text ? el("p", {}, section.text) : null;
  return el(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    el("h2", { id: `${id}-title` }, section.title),
    text,
    blocks,
    notes,
  );
}

function toolbar() {
  const metrics = Object.entries(DATA.metrics);
  const options = metrics.map(([metric, name]) => el("option", { value: metric }, name));
  const select = el("select", { id: "metric", onchange: () => change({ metric: select.value }) }, options);
  const choice = metrics.length > 1 ? el("label", {}, "Metric ", select) : null;
  const legend = DATA.recommenders.length ? legendOf(DATA.recommenders, (name, on) => hide(name, !on)) : null;
  return choice || legend
    ? el("div", { class: "toolbar", role: "toolbar", "aria-label": "What to show" }, choice, legend)
    : null;
}

function start() {
  const sentence = DATA.sentence ? el("p", { class: "sentence" }, DATA.sentence) : null;
  const contents = DATA.sections.map((section, at) => el("a", { href: `#section-${at + 1}` }, section.title));
  const top = el("header", {}, el("h1", {}, DATA.title), sentence, el("nav", { "aria-label": "Sections" }, contents));
  PAGE.replaceChildren(...[top, toolbar(), ...DATA.sections.map(sectionView)].filter(Boolean));
}

start();
