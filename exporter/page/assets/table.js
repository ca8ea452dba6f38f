// The table of targets. Rows are kept by id and moved, so that focus, selection and scroll stay.

import { Rates } from "./api.js";
import { Sparkline } from "./charts.js";
import { CONDITIONS, formatNumber, formatShare, formatTime, labelText, make, setText } from "./format.js";

/** key: what the server sorts by; descending: how it is sorted first. */
const COLUMNS = [
  { key: "name", title: "Target", descending: false },
  { key: "rate", title: "Requests/s", descending: true },
  { title: "Last 2 min" },
  { key: "p50", title: "p50", hint: "Median of the durations: arrival of a request to the first byte of its reply", descending: true },
  { key: "p99", title: "p99", hint: "99 % of the durations are shorter", descending: true },
  { key: "saturation", title: "Saturation", hint: "0 idle, 100 % saturated: the CPUs in use, or a queue of requests before the first read", descending: true },
  { key: "queue", title: "Queued", hint: "Share of the durations spent before the server's first read", descending: true },
  { key: "idle", title: "Idle", hint: "Share of the polling threads' time spent waiting for work", descending: false },
  { title: "Calls to" },
  { key: "conditions", title: "Conditions", hint: "Why a number may not mean what it says", descending: true },
];

function cell(style, title) {
  return make("td", { role: "cell", class: style, "data-title": title });
}

class Row {
  constructor(id) {
    this.link = make("a", { href: `#/target/${id}` });
    this.labels = make("small");
    this.rate = cell("number", "Requests/s");
    this.spark = new Sparkline(Rates.POINTS);
    this.p50 = cell("number", "p50");
    this.p99 = cell("number", "p99");
    this.saturation = cell("number share saturation", "Saturation");
    this.queue = cell("number share", "Queued");
    this.idle = cell("number share idle", "Idle");
    this.calls = cell("calls", "Calls to");
    this.conditions = cell("conditions", "Conditions");
    const chart = cell("chart-cell", "Last 2 min");
    chart.append(this.spark.element);
    this.element = make("tr", { role: "row" },
      make("th", { role: "rowheader", scope: "row" }, this.link, this.labels),
      this.rate, chart, this.p50, this.p99, this.saturation, this.queue, this.idle, this.calls, this.conditions);
  }

  show(row, points) {
    setText(this.link, row.target);
    setText(this.labels, labelText(row) + (row.live ? "" : " (ended)"));
    setText(this.rate, formatNumber(row.rate));
    this.spark.draw(points);
    setText(this.p50, formatTime(row.p50));
    setText(this.p99, formatTime(row.p99));
    for (const [element, share] of [[this.saturation, row.saturation], [this.queue, row.queue_share], [this.idle, row.idle_share]]) {
      setText(element, formatShare(share));
      element.style.setProperty("--share", share ?? 0);
    }
    const peers = row.dependencies.map(({ peer }) => peer);
    setText(this.calls, peers.slice(0, 1).join("") + (row.peers > 1 ? ` +${row.peers - 1}` : ""));
    this.calls.title = peers.join("\n");
    const conditions = row.conditions.join(" ");
    if (this.conditions.dataset.shown !== conditions) {
      this.conditions.dataset.shown = conditions;
      this.conditions.replaceChildren(...row.conditions.map((name) =>
        make("span", { class: `condition ${name}`, title: CONDITIONS[name] }, name.replaceAll("_", " "))));
    }
  }
}

export class Table {
  #rows = new Map();

  /** onSort(key, descending) is called when a header is pressed. */
  constructor(element, onSort) {
    this.body = element.tBodies[0];
    this.headers = COLUMNS.map(({ key, title, hint, descending }) => {
      const header = make("th", { role: "columnheader", scope: "col", title: hint });
      if (key) {
        const button = make("button", { type: "button" }, title);
        button.addEventListener("click", () => {
          const sorted = header.getAttribute("aria-sort");
          onSort(key, sorted ? sorted !== "descending" : descending);
        });
        header.append(button);
      } else {
        header.append(title);
      }
      return header;
    });
    element.tHead.append(make("tr", { role: "row" }, ...this.headers));
  }

  showOrder(sort, descending) {
    COLUMNS.forEach(({ key }, index) => {
      if (key !== undefined && key === sort) {
        this.headers[index].setAttribute("aria-sort", descending ? "descending" : "ascending");
      } else {
        this.headers[index].removeAttribute("aria-sort");
      }
    });
  }

  show(rows, rates) {
    const focused = document.activeElement;
    const wanted = new Set(rows.map(({ id }) => id));
    for (const [id, row] of this.#rows) {
      if (!wanted.has(id)) {
        row.element.remove();
        this.#rows.delete(id);
      }
    }
    rows.forEach((data, index) => {
      let row = this.#rows.get(data.id);
      if (!row) this.#rows.set(data.id, (row = new Row(data.id)));
      row.show(data, rates.of(data.id));
      if (this.body.children[index] !== row.element) this.body.insertBefore(row.element, this.body.children[index] ?? null);
    });
    // A row that is moved loses the focus.
    if (focused !== document.activeElement && this.body.contains(focused)) focused.focus({ preventScroll: true });
  }
}
