// What the reader has set in the explorer, and the controls to set it.
const METRIC_NAMES = {
  "recall@k": "Recall@k",
  "ndcg@k": "NDCG@k",
  "ap@k": "AP@k",
  "precision@k": "Precision@k",
  ap: "AP (= RR)",
  ndcg: "NDCG",
  auc: "AUC",
};
const DESIGN_NAMES = { false: "without replacement", true: "with replacement (eq. 15)" };
const CORRECTION_NAMES = {
  none: "none: the sampled metric",
  rank: "rank estimate (eq. 20)",
  bv: "bias-variance (eq. 25)",
};
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

const metricText = () => METRIC_NAMES[setting.metric].replace("@k", `@${setting.k}`);
const correctionText = () =>
  setting.correction === "none" ? "" : setting.correction === "bv" ? `, bv(${setting.gamma})` : ", rank estimate";

// Sliders move by factors, since what matters is the order of magnitude.
function slider(name) {
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
  let key = null,
    value = null;
  return () => {
    const now = JSON.stringify(depends());
    if (now !== key) [key, value] = [now, compute()];
    return value;
  };
}
