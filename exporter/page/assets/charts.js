// Small charts: lines as SVG, the heatmap on a canvas. Each says in words what it shows.

import { make, setText } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const POINTS = 300;
const HEIGHT = 100;

function svgElement(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** Path data of the latest points, right-aligned; gaps where there is null. `place` maps a value to 0 … 1. */
function pathOf(points, place, width = POINTS) {
  let path = "";
  let pen = "M";
  const start = width - points.length;
  points.forEach((value, index) => {
    if (value === null) {
      pen = "M";
      return;
    }
    const y = HEIGHT * (1 - Math.min(Math.max(place(value), 0), 1));
    path += `${pen}${start + index} ${y.toFixed(1)}`;
    pen = "L";
  });
  return path;
}

function highest(points) {
  return points.reduce((most, value) => Math.max(most, value ?? 0), 0);
}

/** A line without axes, for a cell of the table. */
export class Sparkline {
  /** `width`: how many points have room. */
  constructor(width) {
    this.width = width;
    this.element = svgElement("svg", {
      viewBox: `0 -2 ${width} ${HEIGHT + 4}`, preserveAspectRatio: "none", class: "sparkline", "aria-hidden": "true",
    });
    this.line = svgElement("path", { class: "line-a" });
    this.element.append(this.line);
  }

  draw(points) {
    const most = highest(points) || 1;
    this.line.setAttribute("d", pathOf(points, (value) => value / most, this.width));
  }
}

/** Lines over five minutes with a scale. series: [{ name, class }]. */
export class LineChart {
  constructor(title, series, { format, logarithmic = false, most = null }) {
    this.title = title;
    this.format = format;
    this.logarithmic = logarithmic;
    this.most = most;
    this.series = series;
    this.lines = series.map(({ style }) => svgElement("path", { class: style }));
    this.svg = svgElement("svg", { viewBox: `0 -2 ${POINTS} ${HEIGHT + 4}`, preserveAspectRatio: "none", role: "img" });
    this.svg.append(...this.lines);
    this.top = make("span", { class: "top" });
    this.bottom = make("span", { class: "bottom" });
    const legend = series.map(({ name, style }) => make("span", { class: `key ${style}` }, name));
    this.element = make("figure", { class: "chart" },
      make("figcaption", {}, title, ...(series.length > 1 ? legend : [])),
      make("div", { class: "plot" }, this.svg, make("div", { class: "scale", "aria-hidden": "true" }, this.top, this.bottom)),
      make("div", { class: "times", "aria-hidden": "true" }, make("span", {}, "5 min ago"), make("span", {}, "now")));
  }

  draw(lists) {
    const known = lists.flat().filter((value) => value !== null);
    const most = this.most ?? (highest(known) || 1);
    const least = this.logarithmic ? Math.min(...known.filter((value) => value > 0), most / 10) : 0;
    const place = this.logarithmic
      ? (value) => Math.log(value / least) / Math.log(most / least)
      : (value) => value / most;
    lists.forEach((points, index) => this.lines[index].setAttribute("d", pathOf(points, place)));
    setText(this.top, this.format(most));
    setText(this.bottom, this.format(least));
    const said = lists.map((points, index) =>
      `${this.series[index].name} now ${this.format(points.at(-1) ?? null)}, highest ${this.format(highest(points))}`);
    this.svg.setAttribute("aria-label", `${this.title} over the last five minutes: ${said.join("; ")}`);
  }
}

/** Requests by duration over time: the darker, the more. */
export class Heatmap {
  static COLUMNS = 60;

  constructor(title, format) {
    this.title = title;
    this.format = format;
    this.canvas = make("canvas", { role: "img", width: 720, height: 260 });
    this.top = make("span", { class: "top" });
    this.bottom = make("span", { class: "bottom" });
    this.element = make("figure", { class: "chart heatmap" }, make("figcaption", {}, title),
      make("div", { class: "plot" }, this.canvas, make("div", { class: "scale", "aria-hidden": "true" }, this.top, this.bottom)),
      make("div", { class: "times", "aria-hidden": "true" }, make("span", {}, "5 min ago"), make("span", {}, "now")));
  }

  draw(columns, bounds) {
    const used = columns.flatMap((column) => column.flatMap((count, row) => (count > 0 ? [row] : [])));
    const first = Math.max(Math.min(...used, bounds.length - 1) - 1, 0);
    const last = Math.min(Math.max(...used, 0) + 1, bounds.length - 1);
    const rows = last - first + 1;
    const most = Math.max(1, ...columns.map((column) => Math.max(...column)));
    const context = this.canvas.getContext("2d");
    const { width, height } = this.canvas;
    context.clearRect(0, 0, width, height);
    context.fillStyle = getComputedStyle(this.canvas).color;
    columns.forEach((column, index) => {
      const x = ((Heatmap.COLUMNS - columns.length + index) * width) / Heatmap.COLUMNS;
      for (let row = first; row <= last; row += 1) {
        if (column[row] > 0) {
          context.globalAlpha = 0.15 + 0.85 * (Math.log1p(column[row]) / Math.log1p(most));
          context.fillRect(x, height - ((row - first + 1) * height) / rows, width / Heatmap.COLUMNS - 1, height / rows - 1);
        }
      }
    });
    const text = (row) => (bounds[row] === null ? "longer" : this.format(bounds[row]));
    setText(this.top, used.length ? text(last) : "");
    setText(this.bottom, used.length ? text(first) : "");
    this.canvas.setAttribute("aria-label", used.length
      ? `${this.title}: between ${text(Math.max(Math.min(...used) - 1, 0))} and ${text(Math.max(...used))}; the numbers are in the table of durations`
      : `${this.title}: no requests`);
  }
}
