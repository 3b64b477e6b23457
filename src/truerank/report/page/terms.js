// Words that are explained when the reader points at them or reaches them with the keyboard.

import { button, DATA, el, PAGE } from "./dom.js";

const TERMS = DATA.terms ?? {};
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const LONGEST_FIRST = Object.keys(TERMS).sort((a, b) => b.length - a.length);
const ANY = LONGEST_FIRST.length
  ? new RegExp(`(?<![\\w-])(${LONGEST_FIRST.map(escaped).join("|")})(?![\\w-])`, "g")
  : null;

// The attributes of an element whose text is a term; none if it is not.
export const explained = (text) => (Object.hasOwn(TERMS, text) ? { "data-term": text } : {});

// A text as parts in which each term is marked once.
export function withTerms(text) {
  if (!ANY) return [text];
  const seen = new Set();
  return text.split(ANY).map((part, at) => {
    if (at % 2 === 0 || seen.has(part)) return part;
    seen.add(part);
    return button(part, () => {}, { class: "term", "data-term": part });
  });
}

// Shows the explanation of the term that the pointer or the focus is on, until it leaves or Escape is pressed.
export function explainTerms() {
  const tip = el("div", { id: "tip", role: "tooltip", hidden: true });
  let on = null;
  const close = () => {
    on?.removeAttribute("aria-describedby");
    on = null;
    tip.hidden = true;
  };
  const open = (event) => {
    const term = event.target.closest?.("[data-term]");
    if (!term || term === on) return;
    close();
    on = term;
    tip.textContent = TERMS[term.dataset.term];
    tip.hidden = false;
    term.setAttribute("aria-describedby", "tip");
    const place = term.getBoundingClientRect();
    const below = place.bottom + 6 + tip.offsetHeight < innerHeight;
    tip.style.left = `${Math.max(8, Math.min(place.left, innerWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${below ? place.bottom + 6 : place.top - tip.offsetHeight - 6}px`;
  };
  for (const begin of ["mouseover", "focusin"]) PAGE.addEventListener(begin, open);
  for (const end of ["mouseout", "focusout"])
    PAGE.addEventListener(end, (event) => event.target.closest?.("[data-term]") === on && close());
  addEventListener("keydown", (event) => event.key === "Escape" && close());
  addEventListener("scroll", close, { passive: true });
  PAGE.append(tip);
}
