// What the reader has chosen, for all sections of the page, and its place in the address: a link shows the same view.

import { DATA, el } from "./dom.js";

const FIRST = Object.keys(DATA.metrics ?? {})[0];
export const chosen = { metric: FIRST, hidden: new Set(), scales: new Map(), section: "" };
const followers = [];
const parts = [];

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

export function writeAddress() {
  const text = String(new URLSearchParams(parts.flatMap((part) => part.write())));
  if (text || location.hash) history.replaceState(null, "", `#${text}`);
}

// Takes the view from the address, now and whenever the reader edits it.
export function followAddress() {
  const read = () => {
    const pairs = new URLSearchParams(location.hash.slice(1));
    for (const part of parts) part.read(pairs);
    for (const draw of followers) draw();
  };
  if (location.hash) read();
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
