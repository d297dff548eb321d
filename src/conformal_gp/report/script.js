"use strict";
// Draws the charts from the page's own data. Text from the data is only ever set as text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const rows = data.rows;
const byId = (id) => document.getElementById(id);
const levelSlider = byId("level");
const rowSlider = byId("row");
const scaled = (value) => (data.logarithmic ? Math.log10(value) : value);

function written(value, unbounded) {
  if (value === null) return unbounded;
  const digits = { minimumFractionDigits: data.decimals, maximumFractionDigits: data.decimals };
  return value.toLocaleString("en-US", data.logarithmic ? { maximumSignificantDigits: 4 } : digits).replace("-", "\u2212");
}

function draw(parent, name, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

// Round numbers inside [from, to], about count of them.
function ticks(from, to, count) {
  const rough = (to - from) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const found = [];
  for (let k = Math.ceil(from / step); k * step <= to; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

// Marks of an axis: places, and what is written there. A logarithmic axis has 1, 2 and 5, or powers of ten.
function marksOf(axis) {
  if (axis.marks) return axis.marks;
  const [from, to] = axis.view;
  let values = ticks(from, to, axis.count);
  if (axis.logarithmic) {
    values = [];
    for (let k = Math.floor(from); k <= to; k++) values.push(...(to - from > 3 ? [1] : [1, 2, 5]).map((m) => m * 10 ** k));
    values = values.filter((value) => Math.log10(value) >= from && Math.log10(value) <= to);
    if (values.length < 2) values = ticks(10 ** from, 10 ** to, axis.count);
  }
  const place = axis.logarithmic ? Math.log10 : (value) => value;
  return values.map((value) => [place(value), value.toLocaleString("en-US", { maximumSignificantDigits: 12 }).replace("-", "\u2212")]);
}

// Axes with grid lines, marks and names: the name of the vertical one above it, of the horizontal one below it.
function axes(svg, height, across, up) {
  svg.replaceChildren();
  const width = Math.max(svg.clientWidth, 240);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const upMarks = marksOf(up);
  const frame = { left: 14 + 7 * Math.max(...upMarks.map((mark) => mark[1].length)), right: width - 10, top: 30, bottom: height - 38 };
  frame.x = (value) => frame.left + ((value - across.view[0]) / (across.view[1] - across.view[0])) * (frame.right - frame.left);
  frame.y = (value) => frame.bottom - ((value - up.view[0]) / (up.view[1] - up.view[0])) * (frame.bottom - frame.top);
  for (const [place, text] of upMarks) {
    draw(svg, "path", { class: "grid", d: `M${frame.left} ${frame.y(place)}H${frame.right}` });
    draw(svg, "text", { x: frame.left - 6, y: frame.y(place) + 4, "text-anchor": "end" }, text);
  }
  let free = -Infinity; // where the last mark ends: marks that would touch it are left out
  for (const [place, text] of marksOf(across)) {
    const [x, half] = [frame.x(place), 3.6 * text.length];
    if (x - half < free || x + half > width) continue;
    draw(svg, "text", { x, y: frame.bottom + 16, "text-anchor": "middle" }, text);
    free = x + half + 6;
  }
  draw(svg, "text", { class: "name", x: 2, y: 14 }, fitting(up.name, width));
  draw(svg, "text", { class: "name", x: (frame.left + frame.right) / 2, y: height - 5, "text-anchor": "middle" }, fitting(across.name, width));
  return frame;
}

const fitting = (text, width) => (text.length * 7 <= width ? text : `${text.slice(0, Math.floor(width / 7) - 1)}\u2026`);

// A value beyond a limit of detection is an arrow from the limit to where the value is.
function dot(x, y, covered, limit) {
  const r = covered ? 2 : 4;
  if (covered && limit) return `M${x - 3} ${y}H${x + 3}M${x} ${y}V${y - 9 * limit}M${x - 3} ${y - 6 * limit}L${x} ${y - 9 * limit}L${x + 3} ${y - 6 * limit}`;
  return covered
    ? `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`
    : `M${x - r} ${y - r}L${x + r} ${y + r}M${x - r} ${y + r}L${x + r} ${y - r}`;
}

// ---- the intervals
const chart = { svg: byId("chart") };

function layOutChart() {
  const across = { view: [0, rows.length], marks: [], name: `${rows.length} held-out rows, sorted by prediction` };
  const up = { view: data.view, logarithmic: data.logarithmic, count: 6, name: data.target };
  Object.assign(chart, axes(chart.svg, window.innerWidth < 640 ? 300 : 400, across, up));
  chart.gap = (chart.right - chart.left) / rows.length;
  chart.middle = (i) => chart.x(i + 0.5);
  chart.guide = draw(chart.svg, "path", { class: "guide", d: "" });
  chart.bars = rows.map((_, i) => draw(chart.svg, "path", { "data-row": i }));
  chart.dots = rows.map(() => draw(chart.svg, "path", {}));
  rows.forEach((row, i) => {
    const [x, y] = [chart.middle(i), chart.bottom];
    if (row.beyond) draw(chart.svg, "path", { class: "far", d: `M${x - 5} ${y + 10}L${x} ${y + 2}L${x + 5} ${y + 10}Z` });
  });
  byId("key-far").hidden = !rows.some((row) => row.beyond);
  for (const key of document.querySelectorAll(".key-limit")) key.hidden = !rows.some((row) => row.limit);
}

function ends(row, level) {
  const [low, high] = data.view;
  const [from, to] = [row.low[level], row.high[level]];
  return { openBelow: from === null || scaled(from) < low, openAbove: to === null || scaled(to) > high, from, to };
}

function bar(i, level) {
  const [x, tip] = [chart.middle(i), 2 + Math.min(6, 0.6 * chart.gap)];
  const { openBelow, openAbove, from, to } = ends(rows[i], level);
  const [y1, y2] = [openBelow ? chart.bottom : chart.y(scaled(from)), openAbove ? chart.top : chart.y(scaled(to))];
  return `M${x} ${y1}V${y2}` +
    (openAbove ? `M${x - tip} ${y2 + tip}L${x} ${y2}L${x + tip} ${y2 + tip}Z` : "") +
    (openBelow ? `M${x - tip} ${y1 - tip}L${x} ${y1}L${x + tip} ${y1 - tip}Z` : "");
}

// ---- predicted against actual, and residuals: ratios on a logarithmic scale
const scatters = [byId("actual"), byId("residuals")].map((svg) => ({ svg }));

function extent(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = 0.05 * (high - low) || 1;
  return [low - room, high + room];
}

function layOutScatters() {
  const predicted = rows.map((row) => scaled(row.prediction));
  const actual = rows.map((row) => scaled(row.y));
  const residual = rows.map((_, i) => actual[i] - predicted[i]);
  const ratio = data.logarithmic ? "actual / predicted" : `residual: actual \u2212 predicted ${data.target}`;
  layOutScatter(scatters[0], predicted, actual, `actual ${data.target}`, predicted);
  layOutScatter(scatters[1], predicted, residual, ratio, rows.map(() => 0));
}

// Values against predictions, and a line where they would be without an error.
function layOutScatter(scatter, predicted, values, name, right) {
  const across = { view: extent(predicted), logarithmic: data.logarithmic, count: 5, name: `predicted ${data.target}` };
  const up = { ...across, view: extent([...values, ...right]), name };
  const frame = axes(scatter.svg, 320, across, up);
  const [first, last] = [0, rows.length - 1].map((i) => `${frame.x(predicted[i])} ${frame.y(right[i])}`);
  draw(scatter.svg, "path", { class: "guide", d: `M${first}L${last}` });
  scatter.at = rows.map((_, i) => [frame.x(predicted[i]), frame.y(values[i])]);
  scatter.dots = rows.map(() => draw(scatter.svg, "path", {}));
}

// ---- coverage against level
const calibration = { svg: byId("calibration") };

function layOutCalibration() {
  const shares = [...data.conformal.coverage, ...data.standard.coverage, ...data.chance.flat()];
  const least = Math.floor(10 * Math.min(...shares)) / 10;
  const inPercent = (share) => `${Math.round(100 * share)}%`;
  const across = { view: [50, 100], marks: [50, 60, 70, 80, 90, 99].map((level) => [level, `${level}%`]), name: "confidence level" };
  const up = { view: [least, 1], marks: ticks(least, 1, 5).map((share) => [share, inPercent(share)]), name: "coverage" };
  const frame = axes(calibration.svg, 280, across, up);
  const points = (values) => values.map((share, k) => `${frame.x(data.levels[k])} ${frame.y(share)}`);
  const path = (name, values) => draw(calibration.svg, "path", { class: name, d: `M${points(values).join("L")}` });
  const [lower, upper] = [0, 1].map((side) => points(data.chance.map((range) => range[side])));
  draw(calibration.svg, "path", { class: "chance", d: `M${upper.join("L")}L${lower.reverse().join("L")}Z` });
  path("nominal", data.levels.map((level) => level / 100));
  path("standard", data.standard.coverage);
  path("conformal", data.conformal.coverage);
  calibration.marker = draw(calibration.svg, "path", { class: "guide", d: "" });
  Object.assign(calibration, frame);
}

// ---- what the sliders change
function showLevel() {
  const percent = Number(levelSlider.value);
  const level = data.levels.indexOf(percent);
  byId("level-text").textContent = `${percent}%`;
  for (const place of document.querySelectorAll(".at")) place.textContent = `${percent}%`;
  levelSlider.setAttribute("aria-valuetext", `${percent}%, coverage ${data.conformal.covered[level]}`);
  byId("coverage").textContent = data.conformal.covered[level];
  byId("expected").textContent = `expected ${data.expected[level]}`;
  byId("width").textContent = data.conformal.width[level];
  byId("standard-coverage").textContent = data.standard.covered[level];
  byId("standard-width").textContent = data.standard.width[level];
  const stroke = Math.max(1, Math.min(6, 0.6 * chart.gap));
  let anyOpen = false;
  rows.forEach((row, i) => {
    const covered = percent >= row.coveredFrom;
    const { openBelow, openAbove } = ends(row, level);
    anyOpen = anyOpen || openBelow || openAbove;
    chart.bars[i].setAttribute("d", bar(i, level));
    chart.bars[i].setAttribute("stroke-width", stroke);
    const marks = [[chart.dots[i], chart.middle(i), chart.y(scaled(row.y))], ...scatters.map((each) => [each.dots[i], ...each.at[i]])];
    for (const [mark, x, y] of marks) {
      mark.setAttribute("d", dot(x, y, covered, row.limit));
      mark.setAttribute("class", covered ? (row.limit ? "in limit" : "in") : "out");
    }
  });
  byId("key-open").hidden = !anyOpen;
  calibration.marker.setAttribute("d", `M${calibration.x(percent)} ${calibration.top}V${calibration.bottom}`);
  showRow();
}

function showRow() {
  const i = Number(rowSlider.value);
  const row = rows[i];
  const percent = Number(levelSlider.value);
  const level = data.levels.indexOf(percent);
  const covered = percent >= row.coveredFrom ? "covered" : "not covered";
  const interval = `${written(row.low[level], "\u2212\u221e")} to ${written(row.high[level], "\u221e")}`;
  const limit = { "-1": "at most ", 0: "", 1: "at least " }[row.limit];
  const lines = [
    `Row ${row.row}: ${data.target} ${limit}${written(row.y)}, predicted ${written(row.prediction)}`,
    `${percent}% interval: ${interval}, ${covered}`,
    row.coveredFrom < 100 ? `Covered at levels from ${row.coveredFrom}%` : "Not covered at any level up to 99%",
    ...(row.beyond ? ["Outside the training range: the guarantee does not apply"] : []),
    data.inputs.map((name, j) => `${name} ${row.x[j]}`).join(" \u00b7 "),
  ];
  byId("detail").replaceChildren(...lines.map((line) => {
    const paragraph = document.createElement("p");
    paragraph.textContent = line;
    return paragraph;
  }));
  byId("row-text").textContent = row.row;
  rowSlider.setAttribute("aria-valuetext", lines.slice(0, 3).join("; "));
  chart.bars.forEach((path, k) => path.setAttribute("class", k === i ? "bar chosen" : "bar"));
  chart.guide.setAttribute("d", `M${chart.middle(i)} ${chart.top}V${chart.bottom}`);
}

function rowAt(event) {
  const box = chart.svg.getBoundingClientRect();
  const x = ((event.clientX - box.left) / box.width) * chart.svg.viewBox.baseVal.width;
  rowSlider.value = Math.max(0, Math.min(rows.length - 1, Math.floor((x - chart.left) / chart.gap)));
  showRow();
}

// ---- events
function layOut() {
  layOutChart();
  layOutScatters();
  layOutCalibration();
  showLevel();
}

// On paper, every folded part is open.
const folded = [...document.querySelectorAll("details")];
let closed = [];

levelSlider.addEventListener("input", showLevel);
rowSlider.addEventListener("input", showRow);
chart.svg.addEventListener("pointermove", rowAt);
chart.svg.addEventListener("pointerdown", rowAt);
window.addEventListener("resize", layOut);
for (const part of folded) part.addEventListener("toggle", layOut); // a chart has no width while it is folded
window.addEventListener("beforeprint", () => {
  closed = folded.filter((part) => !part.open);
  for (const part of closed) part.open = true;
  layOut();
});
window.addEventListener("afterprint", () => {
  for (const part of closed) part.open = false;
});
layOut();
