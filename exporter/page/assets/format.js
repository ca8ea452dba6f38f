// Numbers as people read them, and elements made of text only: nothing that comes from the kernel is ever markup.

const UNKNOWN = "–";

/** "12 345", "12.3", "0.05": three digits that count. */
export function formatNumber(value) {
  if (value === null || value === undefined) return UNKNOWN;
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en", { maximumFractionDigits: digits }).replaceAll(",", "\u202f");
}

/** "850 µs", "1.25 ms", "12 s". */
export function formatTime(seconds) {
  if (seconds === null || seconds === undefined) return UNKNOWN;
  const [scale, unit] = seconds < 1e-3 ? [1e6, "µs"] : seconds < 1 ? [1e3, "ms"] : [1, "s"];
  return `${Number((seconds * scale).toPrecision(3))}\u00a0${unit}`;
}

export function formatShare(share) {
  if (share === null || share === undefined) return UNKNOWN;
  return share > 0 && share < 0.005 ? "<\u202f1\u00a0%" : `${Math.round(share * 100)}\u00a0%`;
}

/** An exponent for what spans many magnitudes: "1.2e-9". */
export function formatSmall(value) {
  return value === null || value === undefined ? UNKNOWN : Number(value.toPrecision(3)).toString();
}

/** make("td", { class: "number" }, "text", node …): children that are no nodes become text. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Changes the text only if it is another one: selections and screen readers stay where they are. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** "web (team=edge, pod=x)" in two parts: the name, and what tells its namesakes apart. */
export function labelText(row) {
  return Object.entries(row.labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}

/** What a condition means for the numbers beside it. */
export const CONDITIONS = {
  multiplexed: "Connections carry several requests at a time (pipelining, HTTP/2): requests are under-counted.",
  unseen_polls: "Polls that return at once are not seen: the mean wait is an estimate.",
  unseen_arrivals: "Arrivals of data are not seen: durations begin when a request is read.",
  busy_polling: "Most polls do not wait: time spent in them is not idle time.",
  few_samples: "Too few sends for their rate and for the variance of intervals; nothing else is meant.",
  no_poll: "Requests are served without polling calls: idleness is unknown.",
  shed: "tacho costs no more than its limit: intervals, polls and what requests wait for may stand still.",
  shed_requests: "tacho costs no more than its limit: not all requests are counted one by one.",
  frozen: "The cgroup is frozen (docker pause): nothing runs, and requests that wait are not read.",
  lost_events: "A probe has lost events: counts may be too low.",
  one_way: "More than one in ten messages got no reply: messages in flight may need none.",
  multiplexed_calls: "Calls to dependencies are sent before others are answered: they may be under-counted.",
};
