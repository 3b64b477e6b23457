// What the reader has set in the explorer, and the controls to set it.

import { el } from "./dom.js";
import { change, follow, inAddress } from "./state.js";

export const METRIC_NAMES = {
  "recall@k": "Recall@k",
  "ndcg@k": "NDCG@k",
  "ap@k": "AP@k",
  "precision@k": "Precision@k",
  ap: "AP (= RR)",
  ndcg: "NDCG",
  auc: "AUC",
};
export const DESIGN_NAMES = {
  without: "without replacement",
  replaced: "with replacement (eq. 15)",
  inverse: "inverse sampling",
};
export const CORRECTION_NAMES = {
  none: "none: the sampled metric",
  rank: "rank estimate, ~rank (eq. 20)",
  interpolated: "~rank(interpolate)",
  bv: "bias-variance, ~bv(γ) (eq. 25)",
  cls: "constrained least squares, ~cls",
  ls: "least squares, ~ls (eq. 22)",
  unbiased: "~unbiased",
};
const UNIFORM = ["none", "rank", "interpolated", "bv", "cls"];
// What can be chosen under the present settings.
const POSSIBLE = {
  metric: () => (setting.design !== "inverse" ? Object.keys(METRIC_NAMES) : setting.hits > 1 ? ["ap", "auc"] : ["ap"]),
  design: () => Object.keys(DESIGN_NAMES),
  correction: () => ({ without: [...UNIFORM, "ls"], replaced: UNIFORM, inverse: ["unbiased"] })[setting.design],
};
export const LIMITS = { n: [2, 20000], m: [1, 500], hits: [1, 20], k: [1, 1000], gamma: [0.001, 1] };
// When a setting matters; otherwise it is shown faintly.
const MATTERS = {
  m: () => setting.design !== "inverse",
  hits: () => setting.design === "inverse",
  k: () => setting.metric.endsWith("@k"),
  gamma: () => setting.correction === "bv",
};
const HELP = {
  n: "candidates, one of them relevant",
  m: "sampled irrelevant candidates",
  hits: "candidates above that end the draws",
  k: "cut-off of the metric",
  gamma: "weight of the variance",
};
export const setting = {
  n: 10000,
  m: 100,
  hits: 2,
  k: 10,
  gamma: 0.1,
  metric: "ap",
  design: "without",
  correction: "none",
};

const BEGIN = { ...setting };
// What was asked for but is out of range, by the name of the setting.
let refused = {};

export const metricText = () => METRIC_NAMES[setting.metric].replace("@k", `@${setting.k}`);
export const designText = () => (setting.design === "inverse" ? `hits = ${setting.hits}` : `m = ${setting.m}`);
export const correctionText = () =>
  ({ none: "", bv: `, ~bv(${setting.gamma})`, interpolated: ", ~rank(interpolate)" })[setting.correction] ??
  `, ~${setting.correction}`;

// Sliders move by factors, since what matters is the order of magnitude.
export function slider(name) {
  const [low, high] = LIMITS[name];
  const toValue = (place) => low * (high / low) ** (place / 1000);
  const toPlace = (value) => (1000 * Math.log(value / low)) / Math.log(high / low);
  const tidy = (value) => (name === "gamma" ? Number(value.toPrecision(2)) : Math.round(value));
  const range = el("input", {
    type: "range",
    min: 0,
    max: 1000,
    step: 1,
    id: `${name}-slider`,
    "aria-label": `${name}, ${HELP[name]}`,
  });
  const number = el("input", {
    type: "number",
    min: low,
    max: high,
    step: name === "gamma" ? "any" : 1,
    id: name,
    "aria-label": name,
  });
  const show = () => {
    number.value = setting[name];
    range.value = toPlace(setting[name]);
    range.setAttribute("aria-valuetext", setting[name]);
    view.toggleAttribute("data-off", !(MATTERS[name]?.() ?? true));
    problem.textContent = refused[name] ?? "";
  };
  const take = (value) => set({ [name]: value });
  range.addEventListener("input", () => take(tidy(toValue(+range.value))));
  number.addEventListener("change", () => take(number.value === "" ? Number.NaN : +number.value));
  const label = el("label", { for: name }, el("b", {}, name === "gamma" ? "γ" : name), ` ${HELP[name]}`);
  const problem = el("p", { class: "problem", role: "alert" });
  const view = el("div", { class: "setting" }, label, range, number, problem);
  follow(show);
  return view;
}

export function choice(name, label, names) {
  const options = Object.entries(names).map(([value, text]) => el("option", { value }, text));
  const select = el("select", { id: name, onchange: () => set({ [name]: select.value }) }, options);
  follow(() => {
    for (const option of options) option.disabled = !POSSIBLE[name]().includes(option.value);
    select.value = setting[name];
  });
  return el("div", { class: "setting" }, el("label", { for: name }, label), select);
}

// The nearest value in range; what is refused is said.
function inRange(name, value) {
  const [low, high] = LIMITS[name];
  const whole = name === "gamma" ? value : Math.round(value);
  const kept = Number.isNaN(value) ? setting[name] : Math.max(low, Math.min(high, whole));
  if (kept !== value) {
    const kind = name === "gamma" ? "a number" : "a whole number";
    const given = Number.isNaN(value) ? "nothing" : value.toLocaleString("en");
    refused[name] = `${name} is ${kind} from ${low} to ${high.toLocaleString("en")}, got ${given}.`;
  }
  return kept;
}

function limit(name, most, words) {
  if (setting[name] <= most) return;
  setting[name] = most;
  refused[name] = `${name} is at most ${words} = ${most.toLocaleString("en")}.`;
}

// No more candidates are sampled than there are, none is cut off beyond the last rank, and what the design does not
// allow gives way.
export function set(changes) {
  refused = {};
  for (const [name, value] of Object.entries(changes)) setting[name] = name in LIMITS ? inRange(name, value) : value;
  for (const [name, possible] of Object.entries(POSSIBLE))
    if (!possible().includes(setting[name])) setting[name] = possible()[0];
  if (setting.design !== "replaced") limit("m", setting.n - 1, "n − 1");
  limit("k", setting.n, "n");
  change({});
}

inAddress({
  write: () => Object.entries(setting).filter(([name, value]) => value !== BEGIN[name]),
  read(pairs) {
    const given = Object.keys(BEGIN).map((name) => [name, pairs.get(name)]);
    const typed = given.filter(([, text]) => text !== null);
    const changes = typed.map(([name, text]) => [name, name in LIMITS ? Number(text) : text]);
    set({ ...BEGIN, ...Object.fromEntries(changes) });
  },
});

// A function that computes again only after what it depends on has changed.
export function shared(compute, depends = () => setting) {
  let key = null;
  let value = null;
  return () => {
    const now = JSON.stringify(depends());
    if (now !== key) [key, value] = [now, compute()];
    return value;
  };
}
