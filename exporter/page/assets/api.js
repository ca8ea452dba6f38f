// tacho's JSON, one request at a time.

const TIMEOUT_MS = 8000;

export class NotFound extends Error {}
export class Unreachable extends Error {}

/** GET of a path with parameters; a newer call's `signal` ends this one. */
export async function get(path, parameters, signal) {
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(), TIMEOUT_MS);
  const stop = () => timeout.abort();
  signal.addEventListener("abort", stop);
  try {
    const answer = await fetch(`${path}?${new URLSearchParams(parameters)}`, { signal: timeout.signal });
    const text = await answer.text();
    if (answer.status === 404) throw new NotFound(text);
    if (!answer.ok) throw new Unreachable(`${answer.status}: ${text}`);
    return JSON.parse(text);
  } catch (error) {
    throw error instanceof NotFound ? error : new Unreachable(error.message);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", stop);
  }
}

/** The last two minutes of what is shown: fetched once, then one point a second comes with the table. */
export class Rates {
  static POINTS = 120;
  #instance = "";
  #targets = new Map();

  /** Takes a table's rows in; fetches what it cannot continue. */
  async follow(table, signal) {
    if (table.instance !== this.#instance) this.#targets.clear();
    this.#instance = table.instance;
    const unknown = [];
    for (const row of table.rows) {
      const known = this.#targets.get(row.id);
      if (known?.tick === table.tick - 1) {
        known.points.push(row.last_rate);
        if (known.points.length > Rates.POINTS) known.points.shift();
        known.tick = table.tick;
      } else if (known?.tick !== table.tick) {
        unknown.push(row.id);
      }
    }
    for (const id of this.#targets.keys()) {
      if (this.#targets.get(id).tick + Rates.POINTS < table.tick) this.#targets.delete(id);
    }
    // A URL has room for that many.
    for (let at = 0; at < unknown.length; at += 100) {
      const ids = unknown.slice(at, at + 100);
      const answer = await get("api/v1/history", { ids: ids.join(","), since: Math.max(table.tick - Rates.POINTS, 0) }, signal);
      for (const [id, points] of Object.entries(answer.rates)) {
        this.#targets.set(id, { tick: answer.tick, points });
      }
    }
  }

  of(id) {
    return this.#targets.get(id)?.points ?? [];
  }
}
