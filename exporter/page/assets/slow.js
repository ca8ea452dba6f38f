// The slowest requests of a target, each with a bar of what it waited for.

import { formatNumber, formatShare, formatTime, make } from "./format.js";

const ROWS = 16;
const INTERVAL_MS = 5000;
/** In the order in which a request goes through them. */
const PARTS = {
  queue: "unread in the socket", receive: "until it was read as a whole", handover: "until a thread began with it", cpu: "on a CPU",
  runqueue: "waiting for a CPU", lock: "for a lock", disk: "for a disk", network: "in a call on a socket",
  event: "in epoll, poll and the like", sleep: "asleep", other: "for something else",
};

/** [[name, share] …] of the duration, in order. */
function sharesOf(request) {
  return Object.keys(PARTS).filter((name) => request.parts[name]).map((name) => [name, request.parts[name] / request.duration]);
}

function barOf(shares) {
  const said = shares.map(([name, share]) => `${name} ${formatShare(share)}`).join(", ");
  const bar = make("div", { class: "parts", role: "img", "aria-label": said, title: said });
  for (const [name, share] of shares) {
    const part = make("span", { class: `part ${name}` });
    part.style.flexGrow = share;
    bar.append(part);
  }
  return bar;
}

function rowOf(request) {
  const shares = sharesOf(request);
  const [most, share] = shares.reduce((best, each) => (each[1] > best[1] ? each : best), ["–", null]);
  const { calls } = request;
  const cells = [
    make("td", { class: "number" }, formatTime(request.duration)),
    make("td", { class: "number" }, `${formatNumber(Math.round(request.age))}\u00a0s ago`),
    make("td", { class: "parts-cell" }, barOf(shares)),
    make("td", {}, `${most} ${formatShare(share)}`),
    make("td", {}, request.mode.replaceAll("_", " ")),
    make("td", { class: "calls" }, `${request.thread_name} ${request.thread}`),
    make("td", { class: "calls" }, request.client || "–"),
    make("td", { class: "number", title: "of the request, and of the send that began the reply" },
      `${formatNumber(request.bytes)} → ${formatNumber(request.reply_bytes)}`),
    make("td", { class: "calls" }, calls
      ? `${calls.count} in ${formatTime(calls.seconds)}, longest ${formatTime(calls.longest)} to ${calls.longest_peer}` : "–"),
  ];
  return make("tr", {}, ...cells);
}

export class SlowRequests {
  #asked = -Infinity;

  constructor() {
    const titles = ["took", "ended", "what it waited for", "mostly", "served by", "thread", "client", "bytes", "calls meanwhile"];
    this.body = make("tbody");
    const key = make("ul", { class: "part-key", "aria-label": "Colours of the bars" },
      ...Object.entries(PARTS).map(([name, means]) =>
        make("li", {}, make("span", { class: `part ${name}`, "aria-hidden": "true" }), `${name}: ${means}`)));
    this.element = make("section", { class: "slow", "aria-labelledby": "slow-title", hidden: "" },
      make("h3", { id: "slow-title" }, "Slowest requests"),
      make("div", { class: "wide", tabindex: "0", role: "region", "aria-labelledby": "slow-title" },
        make("table", {}, make("thead", {}, make("tr", {}, ...titles.map((title) => make("th", { scope: "col" }, title)))), this.body)),
      key);
  }

  /** Whether it is time to ask again; at most once per interval. */
  isDue(now) {
    if (now - this.#asked < INTERVAL_MS) return false;
    this.#asked = now;
    return true;
  }

  show(answer) {
    const requests = answer.targets[0]?.requests ?? [];
    this.element.hidden = requests.length === 0;
    this.body.replaceChildren(...requests.slice(0, ROWS).map(rowOf));
  }
}
