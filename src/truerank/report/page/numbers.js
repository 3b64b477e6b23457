// How numbers are shown. Copied and sorted numbers keep all their digits.
const MISSING = "–";

export function decimals(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 0.00005) return value.toPrecision(2);
  return value.toLocaleString("en", {
    minimumFractionDigits: size >= 100 ? 0 : 4,
    maximumFractionDigits: size >= 100 ? 1 : 4,
  });
}

const signed = (text) => (text.startsWith("-") ? `−${text.slice(1)}` : text === "0" ? text : `+${text}`);
export const minus = (text) => text.replace(/^-/, "−");
const percent = (value) => `${(100 * value).toFixed(1)} %`;

const FORMATS = {
  text: String,
  digits: minus,
  count: (value) => value.toLocaleString("en", { maximumFractionDigits: 1 }),
  number: (value) => minus(decimals(value)),
  signed: (value) => signed(decimals(value)),
  interval: ([low, high]) => `${minus(decimals(low))} to ${minus(decimals(high))}`,
  estimate: ([mean, ...ends]) => `${minus(decimals(mean))} (${FORMATS.interval(ends)})`,
  share: percent,
  "signed-share": (value) => signed(percent(value)),
  "p-value": (value) => (value < 0.0001 ? "< 0.0001" : value.toFixed(4)),
};

export function isMissing(value) {
  return value === null || value === undefined || (Array.isArray(value) && value.some(isMissing));
}

export const shown = (value, format) => (isMissing(value) ? MISSING : FORMATS[format](value));

// Whether a value is not in its interval, which is that of the exact metric where the value is biased.
export function isOutside([mean, low, high]) {
  return !isMissing([mean, low, high]) && (mean < low || mean > high);
}
