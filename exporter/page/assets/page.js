// The live page: asks tacho once a second for what is on the screen, and for nothing while it is hidden or paused.

import { NotFound, Rates, Unreachable, get } from "./api.js";
import { Detail } from "./detail.js";
import { formatNumber, make, setText } from "./format.js";
import { Table } from "./table.js";

const INTERVAL_MS = 1000;
const PAGE = 50;

const byId = (id) => document.getElementById(id);
const status = byId("status");
const rates = new Rates();
let route = { id: null, sort: "rate", descending: true, filter: "" };
let limit = PAGE;
let detail = null;
let paused = false;
let timer = 0;
let current = new AbortController();

const table = new Table(byId("table"), (sort, descending) => go({ sort, descending }));

/** "#/?sort=p99&order=desc&filter=x" or "#/target/0123456789abcdef". */
function readRoute() {
  const target = location.hash.match(/^#\/target\/([0-9a-f]{16})$/);
  if (target) return { ...route, id: target[1] };
  if (!location.hash.startsWith("#/") && location.hash !== "") return route;  // the skip link
  const parameters = new URLSearchParams(location.hash.split("?")[1] ?? "");
  return {
    id: null, sort: parameters.get("sort") ?? "rate", descending: parameters.get("order") !== "asc",
    filter: parameters.get("filter") ?? "",
  };
}

/** Shows the table in another order or with another filter. */
function go(change) {
  const { sort, descending, filter } = { ...route, ...change };
  const parameters = new URLSearchParams({ sort, order: descending ? "desc" : "asc", ...(filter && { filter }) });
  history.replaceState(null, "", `#/?${parameters}`);
  limit = PAGE;
  enter();
}

function enter() {
  const before = route.id;
  route = readRoute();
  byId("overview").hidden = route.id !== null;
  byId("detail").hidden = route.id === null;
  if (route.id === null) {
    detail = null;
    byId("detail").replaceChildren();
    table.showOrder(route.sort, route.descending);
    if (byId("filter").value.trim() !== route.filter) byId("filter").value = route.filter;
    document.title = "tacho";
    if (before) document.querySelector(`a[href="#/target/${before}"]`)?.focus();
  } else if (detail?.id !== route.id) {
    detail = new Detail(byId("detail"), route.id);
    detail.title.focus();
  }
  refresh();
}

function showStatus(kind, text) {
  document.body.dataset.state = kind;
  setText(status, text);
}

async function showTable(signal) {
  const { sort, descending, filter } = route;
  const data = await get("api/v1/targets", { sort, order: descending ? "desc" : "asc", filter, limit }, signal);
  await rates.follow(data, signal);
  if (signal.aborted) return;
  table.show(data.rows, rates);
  const found = data.matched === data.targets ? `${data.targets}` : `${data.matched} of ${data.targets}`;
  setText(byId("totals"), `${found} · ${formatNumber(data.rate)} requests/s in all`);
  const empty = byId("empty");
  empty.hidden = data.rows.length > 0;
  setText(empty, data.targets === 0
    ? "No server is watched yet. tacho shows containers, services and processes as soon as they listen."
    : "No target matches the filter.");
  byId("table").hidden = data.rows.length === 0;
  byId("more-line").hidden = data.matched <= data.rows.length;
  setText(byId("more"), `Show more (${data.matched - data.rows.length} are hidden)`);
  showNotices(data);
  setText(byId("version"), `tacho ${data.version}`);
}

function showNotices(data) {
  const notices = [];
  if (data.unattached_hooks > 0) notices.push(`${data.unattached_hooks} hooks are not attached: some numbers are missing.`);
  if (data.lost_events > 0) notices.push(`${formatNumber(data.lost_events)} events were lost since the start.`);
  if (data.absent.length > 0) notices.push(`Configured and not there: ${data.absent.join(", ")}`);
  const list = byId("notices");
  if (list.dataset.shown !== notices.join("\n")) {
    list.dataset.shown = notices.join("\n");
    list.hidden = notices.length === 0;
    list.replaceChildren(...notices.map((text) => make("li", {}, text)));
  }
}

async function showDetail(shown, signal) {
  const ask = (since) => get("api/v1/target", { id: shown.id, since }, signal);
  let data = await ask(shown.since);
  if (shown.instance && data.instance !== shown.instance) data = await ask(0);  // tacho was restarted
  if (signal.aborted) return;
  shown.show(data);
  if (shown.slow.isDue(performance.now())) {
    const slow = await get("api/v1/slow", { ids: shown.id }, signal);
    if (signal.aborted) return;
    shown.slow.show(slow);
  }
  document.title = `${data.target.target} – tacho`;
}

async function refresh() {
  clearTimeout(timer);
  current.abort();
  current = new AbortController();
  const { signal } = current;
  const began = performance.now();
  try {
    await (detail ? showDetail(detail, signal) : showTable(signal));
    if (!signal.aborted) showStatus(paused ? "paused" : "live", paused ? "Paused" : "Live");
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof NotFound) {
      showStatus("gone", "This target is gone; it is shown again if it comes back");
    } else if (error instanceof Unreachable) {
      showStatus("lost", "No answer from tacho: trying again");
    } else {
      showStatus("lost", "This page has an error; see the browser's console");
      console.error(error);
    }
  }
  if (!signal.aborted && !paused && !document.hidden) {
    timer = setTimeout(refresh, Math.max(INTERVAL_MS - (performance.now() - began), INTERVAL_MS / 4));
  }
}

byId("filter").addEventListener("input", (event) => go({ filter: event.target.value.trim() }));
byId("search").addEventListener("submit", (event) => event.preventDefault());
byId("more").addEventListener("click", () => {
  limit += 4 * PAGE;
  refresh();
});
byId("pause").addEventListener("click", (event) => {
  paused = !paused;
  event.target.setAttribute("aria-pressed", String(paused));
  refresh();
});
document.addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement;
  if (event.key === "/" && !typing && route.id === null) {
    event.preventDefault();
    byId("filter").focus();
  } else if (event.key === "Escape" && route.id !== null) {
    location.hash = "#/";
  }
});
document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()));
window.addEventListener("hashchange", enter);
enter();
