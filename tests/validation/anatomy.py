"""What requests of real servers wait for at low, middle and high load: one row a level, as CSV."""

import contextlib
import csv
import dataclasses
import pathlib

from support.clients.pgbench import PgbenchRate, initialize
from support.exposition import Change
from support.servers import Postgres
from validation.rig import TARGET, Rig, capacity
from validation.subjects import SUBJECTS, Subject

PARTS = ("queue", "receive", "handover", "cpu", "runqueue", "lock", "disk", "network", "event", "sleep", "other")
MODES = ("same_thread", "handed_over", "interleaved", "unknown")
COLUMNS = ["server", "load", "requests", "mean", *PARTS, *MODES]
LOADS = (0.2, 0.5, 0.85)
_CLOSED = "closed loop"


def _clients(count: int):
    @contextlib.contextmanager
    def opened(place):
        with Postgres(place.server, durable=True) as server:
            initialize(server)
            yield PgbenchRate(server, connections=count, prefix=place.client)

    return opened


# Of one branch row, which every transaction writes: who comes second waits for the first one's commit.
_ROWS = {
    f"postgres-rows-{count}": Subject(
        f"postgres-rows-{count}", "process a connection, one row for all", f"TPC-B-like, {count} clients", _clients(count), turns=7
    )
    for count in (1, 16)
}
_SWEPT = (
    "nginx", "redis", "memcached", "postgres", "mariadb", "gunicorn-threads", "gunicorn-waiting", "waitress-waiting", "java", "go",
    "node", "haproxy",
)  # fmt: skip
SERVERS = {**{name: SUBJECTS[name] for name in _SWEPT}, **_ROWS}


@dataclasses.dataclass(frozen=True)
class Level:
    """Seconds of a request by part, shares of the modes."""

    server: str
    load: str
    requests: int
    mean: float
    parts: dict[str, float]
    modes: dict[str, float]

    @classmethod
    def of(cls, server: str, load: str, change: Change) -> "Level":
        served = {mode: change.of("tacho_request_serving_total", mode=mode) for mode in MODES}
        requests = change.requests
        known = max(1.0, requests - served["unknown"])
        return cls(
            server, load, requests, change.of("tacho_request_duration_seconds_sum") / max(1, requests),
            {part: change.of("tacho_request_time_seconds_total", part=part) / known for part in PARTS},
            {mode: count / max(1, requests) for mode, count in served.items()},
        )  # fmt: skip

    def row(self) -> list:
        return [self.server, self.load, self.requests, self.mean, *self.parts.values(), *self.modes.values()]


def read(file: pathlib.Path) -> list[Level]:
    if not file.exists():
        return []
    with open(file, newline="") as source:
        return [
            Level(row["server"], row["load"], int(row["requests"]), float(row["mean"]), {part: float(row[part]) for part in PARTS},
                  {mode: float(row[mode]) for mode in MODES})
            for row in csv.DictReader(source)
        ]  # fmt: skip


def _burst(rig: Rig, tacho, load: str, rate: float, seconds: float) -> Level:
    tacho.settled(TARGET)
    with tacho.watch(TARGET) as change:
        burst = rig.load.run(rate, seconds)
        if burst.errors:
            raise RuntimeError(f"{burst.errors} requests failed")
        tacho.settled(TARGET)
    return Level.of(rig.subject.name, load, change)


def measure(name: str, seconds: float):
    """The levels of one server."""
    subject = SERVERS[name]
    with Rig(subject) as rig:
        most = None if name in _ROWS else capacity(rig, 2.0, rounds=1)
        with rig.tacho(anatomy=True) as tacho:
            if most is None:
                yield _burst(rig, tacho, _CLOSED, 0, seconds)
            else:
                for load in LOADS:
                    yield _burst(rig, tacho, f"{100 * load:.0f} %", load * most, seconds)


def write(file: pathlib.Path, names: list[str], seconds: float, say) -> None:
    """Measures the servers named; those of the file that are not stay in it."""
    kept = [level for level in read(file) if level.server not in names]
    file.parent.mkdir(parents=True, exist_ok=True)
    for name in names:
        levels = list(measure(name, seconds))
        for level in levels:
            first = max(level.parts, key=level.parts.get)
            say(f"{name} at {level.load}: {level.requests} requests of {1000 * level.mean:.3f} ms, mostly {first}")
        kept += levels
        with open(file, "w", newline="") as out:
            csv.writer(out, lineterminator="\n").writerows([COLUMNS, *(level.row() for level in kept)])
