// What the reader has chosen, for all sections of the page: a metric, and which recommenders are hidden.
const chosen = { metric: Object.keys(DATA.metrics ?? {})[0], hidden: new Set() };
const followers = [];

// Calls `draw` now, and again whenever the reader chooses something else.
function follow(draw) {
  followers.push(draw);
  draw();
}

function change(what) {
  Object.assign(chosen, what);
  followers.forEach((draw) => draw());
}

function hide(name, hidden) {
  if (hidden) chosen.hidden.add(name);
  else chosen.hidden.delete(name);
  change({});
}

const isShown = (names) => !names.some((name) => chosen.hidden.has(name));
