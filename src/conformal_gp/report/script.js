"use strict";
// Draws the two charts from the page's own data. Text from the data is only ever set as text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const [levelSlider, rowSlider] = [byId("level"), byId("row")];
const [low, high] = data.view;
const rows = data.rows;

const written = (value, unbounded) =>
  value === null ? unbounded : value.toFixed(data.decimals).replace("-", "\u2212");

function draw(parent, name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
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

function frame(svg, height) {
  svg.replaceChildren();
  const width = Math.max(svg.clientWidth, 240);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return width;
}

// ---- the intervals
const chart = { svg: byId("chart"), bars: [], labels: [], guide: null };

function layOutChart() {
  const height = window.innerWidth < 640 ? 300 : 400;
  const width = frame(chart.svg, height);
  const [top, bottom, right] = [8, height - 8, width - 8];
  const y = (value) => bottom - ((value - low) / (high - low)) * (bottom - top);
  const marks = ticks(low, high, 6);
  const left = 14 + 7 * Math.max(...marks.map((mark) => String(mark).length));
  for (const mark of marks) {
    draw(chart.svg, "path", { class: "grid", d: `M${left} ${y(mark)}H${right}` });
    const text = draw(chart.svg, "text", { x: left - 6, y: y(mark) + 4, "text-anchor": "end" });
    text.textContent = String(mark).replace("-", "\u2212");
  }
  const gap = (right - left) / rows.length;
  chart.guide = draw(chart.svg, "path", { class: "guide", d: "" });
  chart.bars = rows.map((_, i) => draw(chart.svg, "path", { "data-row": i }));
  chart.labels = rows.map(() => draw(chart.svg, "path", {}));
  rows.forEach((row, i) => {
    const x = left + (i + 0.5) * gap;
    if (row.beyond) draw(chart.svg, "path", { class: "far", d: `M${x - 5} ${bottom + 7}L${x} ${bottom}L${x + 5} ${bottom + 7}Z` });
  });
  Object.assign(chart, { top, bottom, left, gap, y, x: (i) => left + (i + 0.5) * gap });
}

function bar(i, level) {
  const [x, tip] = [chart.x(i), 2 + Math.min(6, 0.6 * chart.gap)];
  const [from, to] = [rows[i].low[level], rows[i].high[level]];
  const [openBelow, openAbove] = [from === null || from < low, to === null || to > high];
  const [y1, y2] = [openBelow ? chart.bottom : chart.y(from), openAbove ? chart.top : chart.y(to)];
  return `M${x} ${y1}V${y2}` +
    (openAbove ? `M${x - tip} ${y2 + tip}L${x} ${y2}L${x + tip} ${y2 + tip}Z` : "") +
    (openBelow ? `M${x - tip} ${y1 - tip}L${x} ${y1}L${x + tip} ${y1 - tip}Z` : "");
}

function label(i, inside) {
  const [x, y, r] = [chart.x(i), chart.y(rows[i].y), inside ? 1.8 : 4];
  return inside
    ? `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`
    : `M${x - r} ${y - r}L${x + r} ${y + r}M${x - r} ${y + r}L${x + r} ${y - r}`;
}

function showLevel() {
  const percent = Number(levelSlider.value);
  const level = data.levels.indexOf(percent);
  byId("level-text").textContent = `${percent}%`;
  levelSlider.setAttribute("aria-valuetext", `${percent}%, coverage ${data.conformal.inside[level]}`);
  byId("coverage").textContent = data.conformal.inside[level];
  byId("width").textContent = data.conformal.width[level];
  byId("plain-coverage").textContent = data.plain.inside[level];
  byId("plain-width").textContent = data.plain.width[level];
  const stroke = Math.max(1, Math.min(6, 0.6 * chart.gap));
  rows.forEach((row, i) => {
    const inside = percent >= row.insideFrom;
    chart.bars[i].setAttribute("d", bar(i, level));
    chart.bars[i].setAttribute("stroke-width", stroke);
    chart.labels[i].setAttribute("d", label(i, inside));
    chart.labels[i].setAttribute("class", inside ? "in" : "out");
  });
  calibration.marker?.setAttribute("d", `M${calibration.x(percent)} ${calibration.top}V${calibration.bottom}`);
  showRow();
}

function showRow() {
  const i = Number(rowSlider.value);
  const row = rows[i];
  const percent = Number(levelSlider.value);
  const level = data.levels.indexOf(percent);
  const inside = percent >= row.insideFrom ? "covered" : "missed";
  const interval = `${written(row.low[level], "\u2212\u221e")} to ${written(row.high[level], "\u221e")}`;
  const lines = [
    `Row ${row.row}: ${data.target} ${written(row.y)}, predicted ${written(row.prediction)}`,
    `${percent}% interval: ${interval}, ${inside}`,
    row.insideFrom < 100 ? `Covered from ${row.insideFrom}% on` : "Missed at every level up to 99%",
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
  chart.guide.setAttribute("d", `M${chart.x(i)} ${chart.top}V${chart.bottom}`);
}

function rowAt(event) {
  const box = chart.svg.getBoundingClientRect();
  const x = ((event.clientX - box.left) / box.width) * chart.svg.viewBox.baseVal.width;
  rowSlider.value = Math.max(0, Math.min(rows.length - 1, Math.floor((x - chart.left) / chart.gap)));
  showRow();
}

// ---- coverage against level
const calibration = { svg: byId("calibration"), marker: null };

function layOutCalibration() {
  const height = 260;
  const width = Math.min(frame(calibration.svg, height), 640);
  const [top, bottom, left, right] = [8, height - 34, 48, width - 20];
  const shares = [...data.conformal.coverage, ...data.plain.coverage, ...data.chance.flat()];
  const least = Math.floor(10 * Math.min(...shares)) / 10;
  const x = (percent) => left + ((percent - 50) / 50) * (right - left);
  const y = (share) => bottom - ((share - least) / (1 - least)) * (bottom - top);
  const line = (values) => "M" + values.map((share, k) => `${x(data.levels[k])} ${y(share)}`).join("L");
  const upper = data.chance.map((ends) => ends[1]);
  const lower = data.levels.map((percent, k) => `${x(percent)} ${y(data.chance[k][0])}`).reverse();
  draw(calibration.svg, "path", { class: "chance", d: `${line(upper)}L${lower.join("L")}Z` });
  for (const share of ticks(least, 1, 5)) {
    draw(calibration.svg, "path", { class: "grid", d: `M${left} ${y(share)}H${right}` });
    const text = draw(calibration.svg, "text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" });
    text.textContent = `${Math.round(100 * share)}%`;
  }
  for (const percent of [50, 60, 70, 80, 90, 100]) {
    const text = draw(calibration.svg, "text", { x: x(percent), y: bottom + 16, "text-anchor": "middle" });
    text.textContent = `${percent}%`;
  }
  const name = draw(calibration.svg, "text", { x: (left + right) / 2, y: bottom + 31, "text-anchor": "middle" });
  name.textContent = "confidence level";
  draw(calibration.svg, "path", { class: "as-asked", d: line(data.levels.map((percent) => percent / 100)) });
  draw(calibration.svg, "path", { class: "plain", d: line(data.plain.coverage) });
  draw(calibration.svg, "path", { class: "conformal", d: line(data.conformal.coverage) });
  calibration.marker = draw(calibration.svg, "path", { class: "guide", d: "" });
  Object.assign(calibration, { x, top, bottom });
}

// ---- events
function layOut() {
  layOutChart();
  layOutCalibration();
  showLevel();
}

levelSlider.addEventListener("input", showLevel);
rowSlider.addEventListener("input", showRow);
chart.svg.addEventListener("pointermove", rowAt);
chart.svg.addEventListener("pointerdown", rowAt);
window.addEventListener("resize", layOut);
layOut();
