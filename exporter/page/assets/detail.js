// Everything about one target.

import { Heatmap, LineChart } from "./charts.js";
import {
  CONDITIONS, formatNumber, formatShare, formatSmall, formatTime, labelText, make, setText,
} from "./format.js";
import { SlowRequests } from "./slow.js";

const POINTS = 300;

/** Description list whose values are set by name. */
class Facts {
  constructor(names) {
    this.values = Object.fromEntries(names.map((name) => [name, make("dd")]));
    this.element = make("dl", { class: "facts" },
      ...names.map((name) => make("div", {}, make("dt", {}, name), this.values[name])));
  }

  show(values) {
    for (const [name, value] of Object.entries(values)) setText(this.values[name], value);
  }
}

function tableOf(caption, titles) {
  const body = make("tbody");
  const element = make("table", { class: "plain" }, make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...titles.map((title) => make("th", { scope: "col" }, title)))), body);
  const show = (rows, empty) => {
    const text = JSON.stringify(rows);
    if (body.dataset.shown === text) return;
    body.dataset.shown = text;
    body.replaceChildren(...rows.map(([first, ...others]) =>
      make("tr", {}, make("th", { scope: "row" }, first), ...others.map((value) => make("td", { class: "number" }, value)))));
    if (!rows.length) body.append(make("tr", {}, make("td", { colspan: titles.length }, empty)));
  };
  return { element, show };
}

/** Appends what is new to what is known, the last POINTS of it. */
function extend(known, fresh, most) {
  return [...known, ...fresh].slice(-most);
}

/** [[bound, count] …] of a quarter of an octave each, added up to `bounds`, empty ones left out. */
function byOctave(histogram, bounds) {
  const counts = bounds.map(() => 0);
  for (const [bound, count] of histogram) {
    const place = bound === null ? -1 : bounds.findIndex((each) => each !== null && bound <= each * 1.001);
    counts[place < 0 ? bounds.length - 1 : place] += count;
  }
  return bounds.map((bound, index) => [bound, counts[index]]).filter(([, count]) => count > 0);
}

export class Detail {
  #data = null;
  #calls = new Map();

  constructor(section, id) {
    this.id = id;
    this.title = make("h2", { id: "detail-title", tabindex: "-1" }, "…");
    this.labels = make("p", { class: "labels" });
    this.now = new Facts(["Requests/s", "p50", "p99", "Saturation", "Queued", "Idle", "In flight", "Connections", "Answered"]);
    this.more = new Facts(["Sends/s", "Mean poll", "Threads waiting", "Interval variance, send", "Interval variance, receive",
      "CV² of intervals, send", "CV² of intervals, receive", "Cgroup", "Unit", "Container", "Processes"]);
    this.why = make("p", { class: "why", hidden: "" });
    this.conditions = make("ul", { class: "notices", hidden: "" });
    this.rate = new LineChart("Requests per second", [{ name: "rate", style: "line-a" }], { format: formatNumber });
    this.duration = new LineChart("Duration", [{ name: "p50", style: "line-a" }, { name: "p99", style: "line-b" }],
      { format: formatTime, logarithmic: true });
    this.shares = new LineChart("Queued and idle", [{ name: "queued", style: "line-b" }, { name: "idle", style: "line-c" }],
      { format: formatShare, most: 1 });
    this.heat = new Heatmap("Requests by duration", formatTime);
    this.histogram = tableOf("Durations of the last ten seconds", ["up to", "requests", "share"]);
    this.dependencies = tableOf("Calls to others, durations since the start", ["peer", "calls", "calls/s", "p50", "p99"]);
    this.slow = new SlowRequests();
    this.hooks = tableOf("Hooks in the kernel, of all targets", ["hook", "method"]);
    this.losses = tableOf("Lost events, of all targets", ["probe and reason", "events"]);
    section.replaceChildren(
      make("p", {}, make("a", { href: "#/", "aria-keyshortcuts": "Escape" }, "← All targets")),
      this.title, this.labels, this.conditions, this.why, this.now.element,
      make("div", { class: "charts" }, this.rate.element, this.duration.element, this.shares.element, this.heat.element),
      this.slow.element,
      make("h3", {}, "Calls"), this.dependencies.element,
      make("h3", {}, "Slack and regularity"), this.more.element,
      make("h3", {}, "In numbers"), make("div", { class: "tables" },
        this.histogram.element, this.hooks.element, this.losses.element));
  }

  /** The tick after which new points are wanted. */
  get since() {
    return this.#data?.tick ?? 0;
  }

  get instance() {
    return this.#data?.instance;
  }

  show(data) {
    const before = this.#data;
    const goesOn = before?.instance === data.instance;
    if (goesOn) {
      for (const [name, list] of Object.entries(data.points)) data.points[name] = extend(before.points[name], list, POINTS);
      this.#extendHeat(before, data);
    }
    this.#data = data;
    this.#showFacts(data);
    this.rate.draw([data.points.rate]);
    this.duration.draw([data.points.p50, data.points.p99]);
    this.shares.draw([data.points.queue_share, data.points.idle_share]);
    this.heat.draw(data.heat.columns, data.heat.bounds);
    this.#showTables(data, goesOn ? data.tick - before.tick : 0);
  }

  /** The answer begins with the column that was under way. */
  #extendHeat(before, data) {
    const width = data.heat.column_seconds;
    const complete = Math.floor(data.tick / width) - Math.floor(before.tick / width);
    const again = data.heat.columns.length - complete;
    const known = before.heat.columns.slice(0, before.heat.columns.length - Math.max(again, 0));
    data.heat.columns = extend(known, data.heat.columns, Heatmap.COLUMNS);
  }

  #showFacts(data) {
    const row = data.target;
    const { poll, intervals, identity } = data;
    setText(this.title, row.target);
    setText(this.labels, labelText(row) + (row.live ? "" : " (ended)"));
    this.now.show({
      "Requests/s": formatNumber(row.rate), p50: formatTime(row.p50), p99: formatTime(row.p99),
      Saturation: formatShare(row.saturation), Queued: formatShare(row.queue_share), Idle: formatShare(row.idle_share),
      "In flight": formatNumber(row.in_flight),
      Connections: formatNumber(row.connections), Answered: formatNumber(data.requests),
    });
    this.more.show({
      "Sends/s": formatNumber(data.sends_per_second), "Mean poll": formatTime(poll.mean_seconds),
      "Threads waiting": `${poll.waiters} of ${poll.threads}`,
      "Interval variance, send": `${formatSmall(intervals.send.variance)} s²`,
      "Interval variance, receive": `${formatSmall(intervals.receive.variance)} s²`,
      "CV² of intervals, send": formatSmall(intervals.send.cv2), "CV² of intervals, receive": formatSmall(intervals.receive.cv2),
      Cgroup: identity.cgroup || "–", Unit: identity.unit || "–",
      Container: [identity.runtime, identity.container_id.slice(0, 12)].filter(Boolean).join(" ") || "–",
      Processes: identity.cgroups ? `of ${identity.cgroups} cgroup${identity.cgroups > 1 ? "s" : ""}` : String(identity.processes),
    });
    setText(this.why, data.why);
    this.why.hidden = data.why === "";
    const conditions = row.conditions.join(" ");
    if (this.conditions.dataset.shown !== conditions) {
      this.conditions.dataset.shown = conditions;
      this.conditions.hidden = row.conditions.length === 0;
      this.conditions.replaceChildren(...row.conditions.map((name) =>
        make("li", {}, make("strong", {}, name.replaceAll("_", " ")), ` ${CONDITIONS[name] ?? ""}`)));
    }
  }

  #showTables(data, seconds) {
    const all = data.recent_durations.reduce((sum, [, count]) => sum + count, 0);
    this.histogram.show(byOctave(data.recent_durations, data.heat.bounds).map(([bound, count]) =>
      [bound === null ? "longer" : formatTime(bound), formatNumber(count), formatShare(count / all)]), "no requests");
    this.dependencies.show(data.target.dependencies.map(({ peer, calls, p50, p99 }) => {
      const known = this.#calls.get(peer);
      const rate = seconds > 0 && known !== undefined ? (calls - known) / seconds : null;
      this.#calls.set(peer, calls);
      return [peer, formatNumber(calls), formatNumber(rate), formatTime(p50), formatTime(p99)];
    }), "no calls seen");
    this.hooks.show(data.hooks.map(({ probe, hook, method, attached }) =>
      [`${probe}.${hook}`, attached ? method : "not attached"]), "none");
    const lost = data.losses.filter(({ events }) => events > 0);
    this.losses.show(lost.map(({ probe, reason, events }) => [`${probe}: ${reason.replaceAll("_", " ")}`, formatNumber(events)]),
      "none");
  }
}
