// Charts of blocks, drawn by Plot: lines, bars, and dots with intervals. Each has a cursor for pointer and keyboard, and
// its numbers as a table. Series differ in colour, lightness and dashes, so that a copy in grey is readable.
const DASHES = ["", "7 3", "2 2.5", "9 3 2 3", "4 2", "12 3", "1 3", "6 2 1 2 1 2"];
const SYMBOLS = ["circle", "diamond", "square", "triangle", "cross", "star", "wye", "times"];
const LOOKS = 8;
const MOST_MARKS = 12;

const look = (at) => ({ stroke: `var(--series-${at % LOOKS})`, strokeDasharray: DASHES[at % LOOKS] });

const seriesNumber = (name, names) => Math.max(0, names.indexOf(name));

function swatch(at) {
  const line = d3.create("svg:svg").attr("class", "swatch").attr("viewBox", "0 0 28 8").attr("aria-hidden", "true");
  line.append("line").attr("x2", 28).attr("y1", 4).attr("y2", 4).attr("stroke-width", 3);
  for (const [name, value] of Object.entries({ stroke: look(at).stroke, "stroke-dasharray": look(at).strokeDasharray }))
    line.select("line").attr(name, value);
  line.append("path").attr("transform", "translate(14 4)").attr("d", d3.symbol(symbolOf(at), 30)()).attr("fill", look(at).stroke);
  return line.node();
}

const symbolOf = (at) => d3[`symbol${SYMBOLS[at % LOOKS].replace(/^./, (letter) => letter.toUpperCase())}`];

const COMMON = { className: "chart", style: { overflow: "visible" }, marginTop: 28, marginBottom: 44, marginRight: 24 };

const axisNumber = (value) => minus(value.toLocaleString("en", { maximumSignificantDigits: 4 }));

// Ticks of a logarithmic axis are labelled where they are 1, 10, 100, ...
function logTick(value) {
  const power = Math.log10(value);
  return Math.abs(power - Math.round(power)) < 1e-9 ? axisNumber(value) : "";
}

function scale(axis, log) {
  const label = axis.name;
  return log ? { type: "log", label, tickFormat: logTick } : { type: "linear", label, tickFormat: axisNumber };
}

function spread(numbers, log) {
  const usable = numbers.filter((value) => value != null && (!log || value > 0));
  return usable.length ? d3.extent(usable) : [log ? 0.1 : 0, 1];
}

function padded([low, high], log) {
  if (low === high) return log ? [low / 2, high * 2] : [low - Math.max(0.05, Math.abs(low) / 2), high + Math.max(0.05, Math.abs(high) / 2)];
  return [low, high];
}

// The numbers of those marks that are not too close to the one before.
function apart(marks, domain, log, width) {
  const place = (log ? d3.scaleLog : d3.scaleLinear)(domain, [0, width - 82]);
  let last = -Infinity;
  return marks.map(({ x }, at) => ({ x, number: String(at + 1) })).filter(({ x }) => {
    const far = place(x) - last > 15;
    if (far) last = place(x);
    return far;
  });
}

// Each kind of chart: what is drawn, where the cursor can stop and what it reads there, and the numbers as a table.
const CHARTS = {
  lines: {
    series: (block) => block.curves.map((curve) => curve.name),
    draw(block, width, logs, names, visible) {
      const curves = block.curves.filter((curve) => visible(curve.name));
      const keep = (point) => point.y != null && (!logs.x || point.x > 0) && (!logs.y || point.y > 0);
      const points = (curve) => d3.zip(curve.x, curve.y).map(([x, y]) => ({ x, y })).filter(keep);
      const all = curves.flatMap((curve) => [...curve.y, curve.end]);
      const low = spread(all, logs.y)[0];
      const xs = padded(spread(block.curves.flatMap((curve) => curve.x), logs.x), logs.x);
      const ys = padded(logs.y ? spread(all, true) : spread([...all, low < 0 ? low : 0], false), logs.y);
      const ends = curves.filter((curve) => curve.end != null).map((curve) => ({ x: xs[1], y: curve.end, name: curve.name }));
      return Plot.plot({
        ...COMMON, width, height: chartHeight(width), marginLeft: 58,
        x: { ...scale(block.x, logs.x), domain: xs, labelAnchor: "center", labelArrow: "none" },
        y: { ...scale(block.y, logs.y), domain: ys, nice: !logs.y, grid: true, labelArrow: "none" },
        marks: [
          low < 0 ? Plot.ruleY([0], { stroke: "var(--faint)" }) : null,
          Plot.ruleX(block.marks, { x: "x", stroke: "var(--muted)", strokeDasharray: "1 3" }),
          Plot.text(apart(block.marks, xs, logs.x, width), { x: "x", frameAnchor: "top", dy: -10, fill: "var(--muted)", text: "number" }),
          curves.map((curve) => Plot.line(points(curve), { x: "x", y: "y", strokeWidth: 2, ...look(seriesNumber(curve.name, names)) })),
          ends.map((end) => Plot.dot([end], { x: "x", y: "y", r: 4.5, fill: look(seriesNumber(end.name, names)).stroke, stroke: "var(--paper)", clip: false })),
        ],
      });
    },
    stops(block, plot, visible) {
      const curves = block.curves.filter((curve) => visible(curve.name));
      const xs = [...new Set(curves.flatMap((curve) => curve.x))].sort(d3.ascending);
      const position = plot.scale("x");
      return xs.map((x) => ({
        at: position.apply(x),
        title: `${block.x.name}: ${axisNumber(x)}`,
        lines: curves.map((curve) => [curve.name, curve.y[curve.x.indexOf(x)]]),
      })).filter((stop) => Number.isFinite(stop.at));
    },
    table(block) {
      const xs = [...new Set(block.curves.flatMap((curve) => curve.x))].sort(d3.ascending);
      const rows = xs.map((x) => [x, ...block.curves.map((curve) => curve.y[curve.x.indexOf(x)])]);
      if (block.curves.some((curve) => curve.end != null)) rows.push(["exact", ...block.curves.map((curve) => curve.end)]);
      return { columns: [{ name: block.x.name, format: "text" }, ...block.curves.map(({ name }) => ({ name, format: "number" }))], rows };
    },
  },
  bars: {
    series: (block) => block.bars.map((bars) => bars.name),
    draw(block, width, logs, names, visible) {
      const series = block.bars.filter((bars) => visible(bars.name));
      const cells = series.flatMap((bars) => block.groups.map((group, at) => ({ group, name: bars.name, y: bars.y[at] })));
      const least = logs.y ? 0.5 : 0;
      const most = d3.max(cells, (cell) => cell.y) ?? 1;
      return Plot.plot({
        ...COMMON, width, height: chartHeight(width), marginLeft: 58, marginBottom: width < 520 ? 84 : 44,
        fx: { domain: block.groups, label: block.x.name, padding: 0.15, tickRotate: width < 520 ? -50 : 0, labelArrow: "none" },
        x: { axis: null, domain: series.map((bars) => bars.name), padding: 0.08 },
        y: { ...scale(block.y, logs.y), domain: [least, Math.max(most, least * 2, 1e-9)], nice: !logs.y, grid: true, labelArrow: "none" },
        marks: [
          series.map((bars) => Plot.barY(cells.filter((cell) => cell.name === bars.name && cell.y > least), {
            fx: "group", x: "name", y1: least, y2: "y",
            fill: look(seriesNumber(bars.name, names)).stroke,
          })),
          Plot.ruleY([least], { stroke: "var(--muted)" }),
        ],
      });
    },
    stops(block, plot, visible) {
      const position = plot.scale("fx");
      return block.groups.map((group, at) => ({
        at: position.apply(group) + position.bandwidth / 2,
        title: `${block.x.name}: ${group}`,
        lines: block.bars.filter((bars) => visible(bars.name)).map((bars) => [bars.name, bars.y[at], "count"]),
      }));
    },
    table(block) {
      const rows = block.groups.map((group, at) => [group, ...block.bars.map((bars) => bars.y[at])]);
      return { columns: [{ name: block.x.name, format: "text" }, ...block.bars.map(({ name }) => ({ name, format: "count" }))], rows };
    },
  },
  dots: {
    series: (block) => [...new Set(block.dots.map((dot) => dot.about[0]))],
    draw(block, width, logs, names) {
      const dots = block.dots.filter((dot) => isShown(dot.about));
      const numbers = dots.flatMap((dot) => [dot.mean, dot.low, dot.high]);
      const text = (dot, at) => (dot.group && dots[at - 1]?.group === dot.group ? "" : dot.group || dot.row);
      const texts = new Map(dots.map((dot, at) => [dot.row, text(dot, at)]));
      const labels = Math.min(width * 0.38, 16 + 7.2 * (d3.max(texts.values(), (label) => label.length) ?? 0));
      const at = (dot) => seriesNumber(dot.about[0], names);
      const ends = { nice: true, grid: true, labelAnchor: "center", labelArrow: "none", ticks: width < 520 ? 4 : undefined };
      return Plot.plot({
        ...COMMON, width, height: 74 + (dots[0]?.group ? 22 : 30) * dots.length, marginLeft: labels,
        x: { ...scale(block.x, false), ...ends, domain: padded(spread(block.zero ? [...numbers, 0] : numbers)) },
        y: { domain: dots.map((dot) => dot.row), label: null, tickSize: 0, tickFormat: (row) => shortened(texts.get(row), labels / 7.2) },
        color: { type: "identity" },
        symbol: { type: "identity" },
        marks: [
          block.zero ? Plot.ruleX([0], { stroke: "var(--muted)" }) : null,
          Plot.ruleY(dots.filter((dot, place) => place && texts.get(dot.row) && dot.group), { y: "row", dy: -11, stroke: "var(--faint)" }),
          Plot.ruleY(dots, { x1: "low", x2: "high", y: "row", strokeWidth: 3, strokeOpacity: 0.45, stroke: (dot) => look(at(dot)).stroke }),
          Plot.dot(dots, { x: "mean", y: "row", r: 5, fill: (dot) => look(at(dot)).stroke, symbol: (dot) => SYMBOLS[at(dot) % LOOKS] }),
        ],
      });
    },
    stops(block, plot) {
      const position = plot.scale("y");
      return block.dots.filter((dot) => isShown(dot.about)).map((dot) => ({
        across: position.apply(dot.row) + (position.bandwidth ?? 0) / 2,
        title: dot.row,
        lines: [["mean", dot.mean], ["95 % interval", [dot.low, dot.high], "interval"]],
      }));
    },
    table(block) {
      const columns = [{ name: "", format: "text" }, { name: block.x.name, format: "number" }, { name: "95 % interval", format: "interval" }];
      return { columns, rows: block.dots.map((dot) => [dot.row, dot.mean, [dot.low, dot.high]]), about: block.dots.map((dot) => dot.about) };
    },
  },
};

const chartHeight = (width) => Math.round(Math.max(240, Math.min(380, width * 0.48)));
const shortened = (text, length) => (text.length <= length ? text : `${text.slice(0, Math.max(3, Math.floor(length) - 1))}…`);

// A line through the chart at one of its stops, with the values there: moved by the pointer or by the arrow keys.
function cursor(figure, names) {
  const box = el("div", { class: "readout", role: "status", hidden: true });
  let stops = [], at = null, line = null, plot = null;
  const along = (stop) => stop.at ?? stop.across;
  const show = () => {
    line?.remove();
    box.hidden = at === null || !stops[at];
    if (box.hidden) return;
    const stop = stops[at];
    const [width, height] = ["width", "height"].map((side) => +plot.getAttribute(side));
    const ends = stop.at === undefined ? [0, stop.across, width, stop.across] : [stop.at, 20, stop.at, height - 40];
    line = d3.select(plot).append("line").attr("class", "cursor");
    ["x1", "y1", "x2", "y2"].forEach((name, side) => line.attr(name, ends[side]));
    const rows = stop.lines.map(([name, value, format]) =>
      el("div", {}, names().includes(name) ? swatch(names().indexOf(name)) : null, el("span", {}, name), el("b", {}, shown(value, format ?? "number"))));
    box.replaceChildren(el("strong", {}, stop.title), ...rows);
    const shrink = plot.clientWidth / width;
    const left = (stop.at ?? width * 0.6) * shrink;
    box.style.left = `${Math.max(0, Math.min(left + 12, plot.clientWidth - box.offsetWidth))}px`;
    if (left + 12 + box.offsetWidth > plot.clientWidth) box.style.left = `${Math.max(0, left - 12 - box.offsetWidth)}px`;
    box.style.top = `${(stop.across === undefined ? 24 : stop.across + 14) * shrink}px`;
  };
  const move = (to) => ((at = to), show());
  const keys = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };
  figure.addEventListener("pointermove", (event) => {
    if (!plot || !stops.length) return;
    const frame = plot.getBoundingClientRect();
    const shrink = frame.width / +plot.getAttribute("width");
    const place = (stops[0].at === undefined ? event.clientY - frame.top : event.clientX - frame.left) / shrink;
    move(d3.leastIndex(stops, (a, b) => Math.abs(along(a) - place) - Math.abs(along(b) - place)));
  });
  figure.addEventListener("pointerleave", () => move(null));
  figure.addEventListener("blur", () => move(null));
  figure.addEventListener("keydown", (event) => {
    if (event.key === "Escape") move(null);
    if (!(event.key in keys) || !stops.length) return;
    event.preventDefault();
    move(at === null ? 0 : Math.max(0, Math.min(stops.length - 1, at + keys[event.key])));
  });
  return {
    box,
    over(newPlot, newStops) {
      [plot, stops, line] = [newPlot, newStops, null];
      at = at !== null && at < stops.length ? at : null;
      show();
    },
  };
}

function scaleToggle(axis, name, logs, redraw) {
  if (!axis?.switch) return null;
  return toggle(`${name} logarithmic`, axis.log, (now) => ((logs[name] = now), redraw()), { class: "quiet", "data-scale": name });
}

// A chart with its legend, if it is not about recommenders, its switches, its cursor and its numbers.
function chartView(block, label) {
  const kind = CHARTS[block.kind];
  const own = block.recommenders === false;
  let names = own ? kind.series(block) : DATA.recommenders;
  const off = new Set();
  const visible = (name) => (own ? !off.has(name) : isShown([name]));
  const logs = { x: block.x?.log ?? false, y: block.y?.log ?? false };
  const canvas = el("div", { class: "canvas", tabindex: 0, role: "group" });
  const reading = cursor(canvas, () => names);
  const draw = () => {
    const width = Math.max(280, canvas.clientWidth);
    const plot = kind.draw(block, width, logs, names, visible);
    plot.setAttribute("role", "img");
    plot.setAttribute("aria-label", label);
    canvas.setAttribute("aria-label", `${label}: use the arrow keys to read values`);
    canvas.replaceChildren(plot, reading.box);
    reading.over(plot, kind.stops(block, plot, visible));
  };
  const ownLegend = () => legendOf(names, (name, on) => (on ? off.delete(name) : off.add(name), draw()));
  const legend = el("div", {}, own ? ownLegend() : null);
  const marks = el("div", {}, marksOf(block));
  const numbers = el("div", { class: "numbers", hidden: true });
  const fillNumbers = () => numbers.replaceChildren(...(numbers.hidden ? [] : [tableView(kind.table(block), `${label}, numbers`)]));
  const asTable = toggle("Numbers", false, (now) => ((numbers.hidden = !now), fillNumbers()), { class: "quiet", title: "Show the numbers of this chart as a table" });
  const tools = el("div", { class: "tools" }, scaleToggle(block.x, "x", logs, draw), scaleToggle(block.y, "y", logs, draw), asTable);
  let drawnWidth = 0;
  new ResizeObserver(() => {
    if (canvas.clientWidth && canvas.clientWidth !== drawnWidth) ((drawnWidth = canvas.clientWidth), draw());
  }).observe(canvas);
  const figure = el("figure", { class: `figure ${block.kind}` }, legend, canvas, marks, tools, numbers);
  // shows another block of the same kind, or the same after the reader has hidden something; switches stay as they are
  figure.update = (next, nextLabel = label) => {
    const fresh = own && String(kind.series(next)) !== String(names);
    [block, label] = [next, nextLabel];
    if (fresh) {
      names = kind.series(block);
      off.clear();
      legend.replaceChildren(ownLegend());
    }
    marks.replaceChildren(...[marksOf(block)].filter(Boolean));
    fillNumbers();
    if (canvas.clientWidth) draw();
  };
  return figure;
}

function legendOf(names, onchange) {
  const items = names.map((name, at) => toggle([swatch(at), name], true, (on) => onchange(name, on), { class: "chip" }));
  return el("div", { class: "legend", role: "group", "aria-label": "Show or hide" }, items);
}

function marksOf(block) {
  if (!block.marks?.length) return null;
  const listed = block.marks.slice(0, MOST_MARKS).map((mark) => el("li", {}, mark.text));
  const rest = block.marks.length - listed.length;
  return el("ol", { class: "marks" }, listed, rest ? el("li", { class: "rest" }, `and ${rest} more`) : null);
}
