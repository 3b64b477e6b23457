// How series look, and how axes are scaled. Series differ in colour, lightness, dashes and symbols, so that a copy in
// grey is readable; thirty of them are all different.

import { isMissing, minus } from "./numbers.js";

const DASHES = ["", "7 3", "2 2.5", "9 3 2 3", "4 2", "12 3", "1 3", "6 2 1 2 1 2"];
const SYMBOLS = ["circle", "diamond", "square", "triangle", "plus", "star", "wye", "times", "cross", "asterisk"];
const COLOURS = 10;

// Series of the same colour, ten apart, differ in dashes and in symbols.
const turned = (at, length) => ((at % COLOURS) + 3 * Math.floor(at / COLOURS)) % length;

export const colour = (at) => `var(--series-${at % COLOURS})`;
export const look = (at) => ({ stroke: colour(at), strokeDasharray: DASHES[turned(at, DASHES.length)] });
export const symbolName = (at) => SYMBOLS[turned(at, SYMBOLS.length)];

export const seriesNumber = (name, names) => Math.max(0, names.indexOf(name));

const symbolOf = (at) => d3[`symbol${symbolName(at).replace(/^./, (letter) => letter.toUpperCase())}`];

export function swatch(at) {
  const line = d3.create("svg:svg").attr("class", "swatch").attr("viewBox", "0 0 28 12").attr("aria-hidden", "true");
  line.append("line").attr("x2", 28).attr("y1", 6).attr("y2", 6).attr("stroke-width", 2);
  for (const [name, value] of Object.entries({ stroke: look(at).stroke, "stroke-dasharray": look(at).strokeDasharray }))
    line.select("line").attr(name, value);
  line
    .append("path")
    .attr("transform", "translate(14 6)")
    .attr("d", d3.symbol(symbolOf(at), 30)())
    .attr("fill", colour(at))
    .attr("stroke", colour(at))
    .attr("stroke-width", 1.5);
  return line.node();
}

export const COMMON = {
  className: "chart",
  style: { overflow: "visible" },
  marginTop: 28,
  marginBottom: 44,
  marginRight: 24,
};

export const axisNumber = (value) => minus(value.toLocaleString("en", { maximumSignificantDigits: 4 }));

// Ticks of a logarithmic axis are labelled where they are 1, 10, 100, ...
function logTick(value) {
  const power = Math.log10(value);
  return Math.abs(power - Math.round(power)) < 1e-9 ? axisNumber(value) : "";
}

export function scale(axis, log) {
  const label = axis.name;
  return log ? { type: "log", label, tickFormat: logTick } : { type: "linear", label, tickFormat: axisNumber };
}

export function spread(numbers, log) {
  const usable = numbers.filter((value) => !isMissing(value) && (!log || value > 0));
  return usable.length ? d3.extent(usable) : [log ? 0.1 : 0, 1];
}

export function padded([low, high], log) {
  if (low === high)
    return log
      ? [low / 2, high * 2]
      : [low - Math.max(0.05, Math.abs(low) / 2), high + Math.max(0.05, Math.abs(high) / 2)];
  return [low, high];
}

export const chartHeight = (width) => Math.round(Math.max(240, Math.min(320, width * 0.42)));
export const rowHeight = (rows) => (rows <= 6 ? 28 : rows <= 16 ? 20 : 17);
export const LETTER = 6.8;
export const shortened = (text, length) =>
  text.length <= length ? text : `${text.slice(0, Math.max(3, Math.floor(length) - 1))}…`;
// The width that names of rows may take.
export const labelWidth = (names, width) =>
  Math.min(width * 0.54, 255, 16 + LETTER * (d3.max(names, (name) => name.length) ?? 0));
