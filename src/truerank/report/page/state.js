// What the reader has chosen, for all sections of the page: a metric, and which recommenders are hidden.

import { DATA, el } from "./dom.js";

export const chosen = { metric: Object.keys(DATA.metrics ?? {})[0], hidden: new Set() };
const followers = [];

// Calls `draw` now, and again whenever the reader chooses something else.
export function follow(draw) {
  followers.push(draw);
  draw();
}

// A holder of the view of a block that may become another one, or none, when the reader chooses something else.
// `current` returns the block and its label.
export function followed(current, view) {
  const holder = el("div", { class: "block" });
  let shown = null;
  follow(() => {
    const [block, label] = current();
    holder.hidden = !block;
    if (!block) return;
    if (shown?.update) {
      shown.update(block, label);
      return;
    }
    shown = view(block, label);
    holder.replaceChildren(shown);
  });
  return holder;
}

export function change(what) {
  Object.assign(chosen, what);
  for (const draw of followers) draw();
}

export function hide(name, hidden) {
  if (hidden) chosen.hidden.add(name);
  else chosen.hidden.delete(name);
  change({});
}

export const isShown = (names) => !names.some((name) => chosen.hidden.has(name));
