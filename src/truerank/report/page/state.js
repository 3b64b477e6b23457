// What the reader has chosen, for all sections of the page, and its place in the address: a link shows the same view.

import { DATA, el } from "./dom.js";

const FIRST = Object.keys(DATA.metrics ?? {})[0];
export const chosen = { metric: FIRST, hidden: new Set(), scales: new Map(), section: "", printing: false };
const followers = [];
const parts = [];

// Calls `draw` now, and again whenever the reader chooses something else.
export function follow(draw) {
  followers.push({ draw, holder: null });
  draw();
}

// A holder of the view of a block that may become another one, or none, when the reader chooses something else.
// `current` returns the block and its label. What is far from the screen is drawn again later.
export function followed(current, view) {
  const holder = el("div", { class: "block" });
  let shown = null;
  const draw = () => {
    const [block, label] = current();
    holder.hidden = !block;
    if (!block) return;
    if (shown?.update) {
      shown.update(block, label);
      return;
    }
    shown = view(block, label);
    holder.replaceChildren(shown);
  };
  followers.push({ draw, holder });
  draw();
  NEAR.observe(holder);
  return holder;
}

const far = new Set();
const stale = new Map();
const NEAR = new IntersectionObserver(
  (changes) => {
    for (const { target, isIntersecting } of changes) {
      if (isIntersecting || target.hidden) far.delete(target);
      else far.add(target);
      if (isIntersecting) redraw(target);
    }
  },
  { rootMargin: "300px" },
);

function redraw(holder) {
  const draw = stale.get(holder);
  stale.delete(holder);
  holder.removeAttribute("data-stale");
  draw?.();
}

// One after another, so that the page answers in between.
function redrawLater() {
  const [holder] = stale.keys();
  if (!holder) return;
  redraw(holder);
  setTimeout(redrawLater);
}

function drawAll() {
  for (const { draw, holder } of followers) {
    if (!far.has(holder)) {
      draw();
      continue;
    }
    stale.set(holder, draw);
    holder.setAttribute("data-stale", "");
  }
  // after the screen has been painted
  requestAnimationFrame(() => setTimeout(redrawLater));
}

// Paper is narrower than most screens; charts are drawn for its width, so that their words can be read.
const PAPER = 680;
export const widthOf = (canvas) => (chosen.printing ? PAPER : Math.max(280, canvas.clientWidth));
for (const [event, printing] of Object.entries({ beforeprint: true, afterprint: false }))
  addEventListener(event, () => {
    chosen.printing = printing;
    for (const { draw } of followers) draw();
  });

export function change(what) {
  Object.assign(chosen, what);
  drawAll();
  writeAddress();
}

export function hide(name, hidden) {
  if (hidden) chosen.hidden.add(name);
  else chosen.hidden.delete(name);
  change({});
}

export const isShown = (names) => !names.some((name) => chosen.hidden.has(name));

// A part of the view: `write` returns its pairs of name and text, `read` takes all pairs of an address.
export const inAddress = (part) => parts.push(part);

// whether the view of the address has been taken, so that the address may follow the view
let isTaken = false;

export function writeAddress() {
  if (!isTaken) return;
  const text = String(new URLSearchParams(parts.flatMap((part) => part.write())));
  if (text || location.hash) history.replaceState(null, "", `#${text}`);
}

// Takes the view from the address, now and whenever the reader edits it.
export function followAddress() {
  const read = () => {
    const pairs = new URLSearchParams(location.hash.slice(1));
    isTaken = false;
    for (const part of parts) part.read(pairs);
    isTaken = true;
    drawAll();
  };
  if (location.hash) read();
  isTaken = true;
  addEventListener("hashchange", read);
}

inAddress({
  write: () => [
    ...(chosen.metric === FIRST ? [] : [["metric", chosen.metric]]),
    ...[...chosen.hidden].map((name) => ["hide", name]),
    ...[...chosen.scales].map(([name, on]) => ["scale", `${name}:${on ? "on" : "off"}`]),
    ...(chosen.section ? [["section", chosen.section]] : []),
  ],
  read(pairs) {
    const metric = pairs.get("metric");
    chosen.metric = metric in (DATA.metrics ?? {}) ? metric : FIRST;
    chosen.hidden = new Set(pairs.getAll("hide").filter((name) => DATA.recommenders.includes(name)));
    chosen.scales = new Map(pairs.getAll("scale").map((text) => [text.replace(/:\w+$/, ""), text.endsWith(":on")]));
    chosen.section = pairs.get("section") ?? "";
  },
});
