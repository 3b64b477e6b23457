// The report: what it says on top, what the reader can choose, and the sections.

import { chartView, legendOf } from "./charts.js";
import { button, DATA, el, PAGE } from "./dom.js";
import { change, chosen, follow, followAddress, followed, hide, writeAddress } from "./state.js";
import { tableView } from "./tables.js";
import { explainTerms, withTerms } from "./terms.js";

function paragraphView(block) {
  const element = el("p", { class: "finding" }, block.text);
  element.update = (next) => {
    element.textContent = next.text;
  };
  return element;
}

const factsView = (block) =>
  el(
    "dl",
    {},
    Object.entries(block.facts).flatMap(([term, fact]) => [el("dt", {}, term), el("dd", {}, fact)]),
  );
const VIEWS = {
  table: tableView,
  lines: chartView,
  bars: chartView,
  dots: chartView,
  matrix: chartView,
  panels: chartView,
  shares: chartView,
  beside: (block, label, name) =>
    el(
      "div",
      { class: "beside" },
      block.blocks.map((each, at) => blockView(each, `${label}.${at + 1}`, `${name}.${at + 1}`)),
    ),
  paragraph: paragraphView,
  facts: factsView,
};

const metricName = (metric) => DATA.metrics[metric] ?? metric;

// A block is drawn again if the reader chooses something else; one by metric is that of the chosen metric.
function blockView(block, title, name) {
  const byMetric = block.kind === "by-metric";
  const current = () =>
    byMetric ? [block.blocks[chosen.metric], `${title}, ${metricName(chosen.metric)}`] : [block, title];
  return followed(current, (now, label) => VIEWS[now.kind](now, label, name));
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
  const several = section.blocks.length > 1;
  const blocks = section.blocks.map((block, place) =>
    blockView(block, several ? `${section.title} ${place + 1}` : section.title, `${at + 1}.${place + 1}`),
  );
  const text = section.text ? el("p", { class: "how" }, withTerms(section.text)) : null;
  const heading = el("h2", { id: `${id}-title` }, section.title);
  const attributes = { id, tabindex: -1, class: section.half ? "half" : "", "aria-labelledby": `${id}-title` };
  return el("section", attributes, heading, text, blocks, notes);
}

// The metric, and the recommenders, in one line.
function toolbar() {
  const metrics = Object.entries(DATA.metrics);
  const options = metrics.map(([metric, name]) => el("option", { value: metric }, name));
  const select = el("select", { id: "metric", onchange: () => change({ metric: select.value }) }, options);
  const choice = metrics.length > 1 ? el("label", {}, "Metric ", select) : null;
  const legend = DATA.recommenders.length ? legendOf(DATA.recommenders, (name, on) => hide(name, !on)) : null;
  if (!choice && !legend) return null;
  const all = button("Show all", () => change({ hidden: new Set() }), { class: "quiet", hidden: true });
  follow(() => {
    if (chosen.metric) select.value = chosen.metric;
    all.hidden = !chosen.hidden.size;
    for (const [at, chip] of [...(legend?.children ?? [])].entries())
      chip.setAttribute("aria-pressed", !chosen.hidden.has(DATA.recommenders[at]));
  });
  return el("div", { class: "toolbar", role: "toolbar", "aria-label": "What to show" }, choice, legend, all);
}

// The two sentences on the chosen metric.
function headline() {
  const [claim, sampled] = ["sentence", "sampled"].map((name) => el("p", { class: name }));
  follow(() => {
    const told = DATA.headlines[chosen.metric];
    // a number stays with its percent sign
    const text = (sentence) => (sentence ?? "").replaceAll(" %", "\u00a0%");
    claim.textContent = text(told?.claim);
    sampled.textContent = text(told?.sampled);
    sampled.hidden = !told?.sampled;
    claim.hidden = !told;
  });
  return el("div", { role: "status" }, claim, sampled);
}

function goTo(id) {
  const section = document.getElementById(id);
  if (!section) return;
  section.scrollIntoView();
  section.focus({ preventScroll: true });
}

function contents() {
  const link = (section, at) => {
    const id = `section-${at + 1}`;
    const go = (event) => {
      event.preventDefault();
      chosen.section = id;
      writeAddress();
      goTo(id);
    };
    return el("a", { href: `#section=${id}`, onclick: go }, section.title);
  };
  return el("nav", { "aria-label": "Sections" }, DATA.sections.map(link));
}

function start() {
  const top = el("header", {}, el("h1", {}, DATA.title), headline(), contents());
  PAGE.replaceChildren(...[top, toolbar(), ...DATA.sections.map(sectionView)].filter(Boolean));
  explainTerms();
  followAddress();
  // after the charts have got their heights
  if (chosen.section) requestAnimationFrame(() => requestAnimationFrame(() => goTo(chosen.section)));
}

start();
