"""Which signal tells saturation? The client's side judges, estimators see only what the kernel shows, without calibration.

A level is saturated when the client's p99 is above the objective of its server, or when requests are answered slower than
they come. Symbols: T the window, λ = requests/T, Wq and S the mean queue and service time, Lq = λ·Wq the mean number of
requests that wait to be read (Little 1961), C the CPUs that the target may use.
"""

import dataclasses
import math
import statistics

# The objective: five times the p99 at low load, and at least so much above it.
FACTOR, AT_LEAST = 5, 0.010
LOW_LOAD = 0.31
ACHIEVED = 0.97
THRESHOLD = 0.8
UNLOADED = (0.6, 0.7)
# The gauge itself; it looks back on its own window.
EXPORTED = "tacho_saturation_ratio"


def objective(levels, factor: float = FACTOR) -> float:
    """Of one server's p99, in seconds."""
    quiet = statistics.median(level.client("latency_p99") for level in levels if level.load <= LOW_LOAD)
    return max(factor * quiet, quiet + AT_LEAST)


def labels(levels, factor: float = FACTOR) -> list[bool]:
    """Is it saturated, of each level of one server."""
    limit = objective(levels, factor)

    return [level.client("latency_p99") > limit or _falls_behind(level) for level in levels]


def _falls_behind(level) -> bool:
    """Fewer are answered than come; both by count and by time, since a single late request is no backlog."""
    offered = level.client("offered")
    return level.client("backlog") > (1 - ACHIEVED) * offered and (
        level.client("elapsed") > level.client("arrivals_seconds") / ACHIEVED
    )


class Signals:
    """What the estimators are made of, of one level."""

    def __init__(self, level):
        self.seconds = level.seconds
        self.limit = level.subject.limit_cores
        requests = max(1.0, level.tacho("tacho_requests_total"))
        self.rate = requests / self.seconds
        self.queue = level.tacho("tacho_request_queue_seconds_sum") / requests
        self.service = level.tacho("tacho_request_service_seconds_sum") / requests
        self.duration = level.tacho("tacho_request_duration_seconds_sum") / requests
        state = "tacho_thread_state_seconds_total"
        if level.has(state):
            self.running = level.tacho(f'{state}{{state="running"}}') / self.seconds
            self.runnable = level.tacho(f'{state}{{state="runnable"}}') / self.seconds
            blocked = sum(level.tacho(f'{state}{{state="{kind}"}}') for kind in ("blocked", "iowait"))
            self.blocked = blocked / self.seconds
        else:
            # The same from the kernel's accounts, until the probe `sched` is there.
            self.running = level.truth("cpu_seconds") / self.seconds
            self.runnable = max(0.0, level.truth("run_queue_seconds")) / self.seconds
            self.blocked = 0.0
        self.idle = level.tacho("tacho_idle_seconds_total") / self.seconds
        self.threads = level.tacho("tacho_threads")
        self.connections = level.tacho('tacho_connections_active{role="server"}')
        self.in_flight = level.tacho("tacho_requests_in_flight")
        self.cv2 = level.cv2
        self.exported = level.tacho(EXPORTED)

    @property
    def waiting(self) -> float:
        """Lq."""
        return self.rate * self.queue


def utilisation_of_mm1(waiting: float) -> float:
    """The utilisation ρ at which an M/M/1 queue has so many waiting: Lq = ρ²/(1 − ρ)."""
    return (math.sqrt(waiting * waiting + 4 * waiting) - waiting) / 2


def _clamp(value: float) -> float:
    return min(1.0, max(0.0, value))


def _queue_share(s: Signals) -> float:
    return s.queue / (s.queue + s.service) if s.queue + s.service else 0.0


def _cpu(s: Signals) -> float:
    return _clamp(s.running / s.limit)


def _waiting(s: Signals) -> float:
    return utilisation_of_mm1(s.waiting)


def _poll_busy(s: Signals) -> float:
    return _clamp(1 - s.idle / s.threads) if s.threads else 0.0


ESTIMATORS = {
    "CPU: running / C": _cpu,
    "CPU, C unknown (2)": lambda s: _clamp(s.running / 2),
    "running + runnable, of C": lambda s: _clamp((s.running + s.runnable) / s.limit),
    "runnable / (running + runnable)": lambda s: s.runnable / max(1e-9, s.running + s.runnable),
    "M/M/1 with so many runnable": lambda s: utilisation_of_mm1(s.runnable),
    "poll busy: 1 − idle / threads": _poll_busy,
    "queue share: Wq / (Wq + S)": _queue_share,
    "Lq / (1 + Lq)": lambda s: s.waiting / (1 + s.waiting),
    "M/M/1 with so many waiting": _waiting,
    "L / (1 + L), L = λ·duration": lambda s: s.rate * s.duration / (1 + s.rate * s.duration),
    "L / connections": lambda s: _clamp(s.rate * s.duration / s.connections) if s.connections else 0.0,
    "in flight / (1 + in flight)": lambda s: s.in_flight / (1 + s.in_flight),
    "1 − CV²": lambda s: _clamp(1 - s.cv2),
    "max(CPU, M/M/1 waiting)": lambda s: max(_cpu(s), _waiting(s)),
    "max(CPU, M/M/1 waiting), C unknown (2)": lambda s: max(_clamp(s.running / 2), _waiting(s)),
    "max(M/M/1 waiting, M/M/1 runnable)": lambda s: max(_waiting(s), utilisation_of_mm1(s.runnable)),
    "M/M/1 with waiting + runnable": lambda s: utilisation_of_mm1(s.waiting + s.runnable),
    "max(CPU, M/M/1 with waiting + blocked)": lambda s: max(_cpu(s), utilisation_of_mm1(s.waiting + s.blocked)),
    "max(CPU, queue share)": lambda s: max(_cpu(s), _queue_share(s)),
    "max(CPU, queue share · M/M/1)": lambda s: max(_cpu(s), _queue_share(s) * _waiting(s)),
    "mean(CPU, M/M/1 waiting)": lambda s: (_cpu(s) + _waiting(s)) / 2,
    "max(poll busy, M/M/1 waiting)": lambda s: max(_poll_busy(s), _waiting(s)),
}


def auc(scores: list[float], truths: list[bool]) -> float | None:
    """The probability that a saturated level scores above one that is not; None without one of them."""
    yes = [score for score, truth in zip(scores, truths) if truth]
    no = [score for score, truth in zip(scores, truths) if not truth]
    if not yes or not no:
        return None
    wins = sum((high > low) + 0.5 * (high == low) for high in yes for low in no)
    return wins / (len(yes) * len(no))


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Of one estimator. `pooled`: AUC over all levels of all servers, `worst`: of the worst server, with its name.

    `false_below`: share of the levels below 60 % and 70 % load that are not saturated and score above the threshold; `missed`:
    share of the saturated ones that do not; `lead`: load at which the score crosses it over the load at which the
    server saturates, median of the servers.
    """

    name: str
    pooled: float | None
    worst: tuple[float, str] | None
    false_below: tuple[float, ...]
    missed: float
    lead: float | None


def judge(name: str, estimator, servers: dict) -> Verdict:
    """`servers`: name → [(level, Signals, saturated)]. `estimator`: one for all, or a dictionary with one for each."""
    of = estimator if isinstance(estimator, dict) else dict.fromkeys(servers, estimator)
    everything = [(level, of[server](signals), truth) for server, rows in servers.items() for level, signals, truth in rows]
    scores, truths = [score for _, score, _ in everything], [truth for _, _, truth in everything]
    each = []
    for server, rows in servers.items():
        if (area := auc([of[server](signals) for _, signals, _ in rows], [truth for _, _, truth in rows])) is not None:
            each.append((area, server))
    false = tuple(
        _share(score > THRESHOLD for level, score, truth in everything if level.load < below and not truth)
        for below in UNLOADED
    )
    leads = [lead for server, rows in servers.items() if (lead := _lead(of[server], rows)) is not None]
    return Verdict(
        name, auc(scores, truths), min(each) if each else None, false,
        _share(score <= THRESHOLD for _, score, truth in everything if truth),
        statistics.median(leads) if leads else None,
    )  # fmt: skip


def _share(hits) -> float:
    hits = list(hits)
    return sum(hits) / len(hits) if hits else 0.0


def _lead(estimator, rows) -> float | None:
    """Loads in steps: the lowest at which the median of the repeats crosses, for the score and for the truth."""
    by_load: dict[float, list] = {}
    for level, signals, truth in rows:
        by_load.setdefault(level.load, []).append((estimator(signals), truth))
    loads = sorted(by_load)
    crosses = [load for load in loads if statistics.median(score for score, _ in by_load[load]) > THRESHOLD]
    saturates = [load for load in loads if statistics.median(truth for _, truth in by_load[load]) > 0.5]
    return crosses[0] / saturates[0] if crosses and saturates else None


def best_threshold(rows, estimator) -> float:
    """Most saturated levels above it and most others below it (Youden)."""
    scored = sorted((estimator(signals), truth) for _, signals, truth in rows)
    positives = sum(truth for _, truth in scored)
    negatives = len(scored) - positives
    best, hits, alarms = (0.0, 1.0), positives, negatives
    for score, truth in scored:
        hits, alarms = hits - truth, alarms - (not truth)
        best = max(best, (hits / max(1, positives) - alarms / max(1, negatives), score))
    return best[1]


def judged(servers: dict[str, list], factor: float = FACTOR) -> dict[str, list]:
    """name → [(level, Signals, saturated)] of servers that have quiet levels, which the objective comes from."""
    return {
        name: [(level, Signals(level), truth) for level, truth in zip(levels, labels(levels, factor))]
        for name, levels in servers.items()
        if any(level.load <= LOW_LOAD for level in levels)
    }
