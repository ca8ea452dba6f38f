"""The sweep of one server: levels of offered load in random order, and what came of them as rows of a CSV file.

Columns: load (a share of the capacity), repeat, source, interval, name, value.
source client: what the load says; truth: the kernel's own accounts; tacho: every series of the target.
interval whole: from standstill to standstill, so that counts are exact; window: while requests arrive, without the first
tenth. Counters are the difference over the interval, gauges the value at its end. The row "complete" ends a level.
"""

import csv
import pathlib
import random
import time

from validation.rig import Look, Rig, capacity, sleep_until

COLUMNS = ["load", "repeat", "source", "interval", "name", "value"]
_COUNTERS = {"counter", "histogram"}


def levels_of(count: int) -> list[float]:
    """From 10 % to 130 %."""
    return [0.7] if count == 1 else [round(0.1 + 1.2 * number / (count - 1), 4) for number in range(count)]


def plan(name: str, levels: int, repeats: int) -> list[tuple[float, int, int]]:
    """(load, repeat, seed) in an order that is random and the same every time."""
    chance = random.Random(f"{name} {levels} {repeats}")
    order = [(load, repeat, chance.randrange(2**31)) for repeat in range(repeats) for load in levels_of(levels)]
    chance.shuffle(order)
    return order


class Results:
    """A server's file. Opened anew it goes on after the last complete level, if its capacity is in it."""

    def __init__(self, file: pathlib.Path, resume: bool):
        self.file = file
        self.capacity: float | None = None
        self.done: set[tuple[float, int]] = set()
        kept = self._kept() if resume and file.exists() else []
        file.parent.mkdir(parents=True, exist_ok=True)
        with open(file, "w", newline="") as out:
            writer = csv.writer(out)
            writer.writerows([COLUMNS, *kept])

    def _kept(self) -> list[list[str]]:
        with open(self.file, newline="") as source:
            rows = [row for row in csv.reader(source) if len(row) == len(COLUMNS)][1:]
        self.done = {(float(row[0]), int(row[1])) for row in rows if row[4] == "complete"}
        for row in rows:
            if row[4] == "capacity":
                self.capacity = float(row[5])
        return [row for row in rows if row[4] == "capacity" or (row[0] and (float(row[0]), int(row[1])) in self.done)]

    def write_capacity(self, value: float) -> None:
        self.capacity = value
        self._append([["", "", "client", "", "capacity", value]])

    def write(self, load: float, repeat: int, rows) -> None:
        self._append([[load, repeat, *row] for row in rows] + [[load, repeat, "", "", "complete", 1]])

    def _append(self, rows) -> None:
        with open(self.file, "a", newline="") as out:
            csv.writer(out).writerows(rows)


def differences(before: Look, after: Look, interval: str):
    """Rows of what changed between two looks, and of the gauges at the second."""
    yield "client", interval, "seconds", after.moment - before.moment
    for name, value in after.truth.items():
        yield "truth", interval, name, value - before.truth[name]
    old = before.series()
    for name, (kind, value) in after.series().items():
        if kind not in _COUNTERS:
            yield "tacho", interval, name, value
        elif (change := value - old.get(name, (kind, 0.0))[1]) != 0:
            yield "tacho", interval, name, change


def measure(rig: Rig, tacho, rate: float, seconds: float, seed: int):
    """Rows of one level."""
    start = rig.settled(tacho)
    began = time.monotonic()
    rig.load.start(rate, seconds, seed)
    sleep_until(began + max(0.1 * seconds, 0.3))
    first = rig.look(tacho)
    sleep_until(began + seconds)
    last = rig.look(tacho)
    burst = rig.load.result(10 * seconds + 30)
    end = rig.settled(tacho)
    subject = rig.subject
    for name in ("elapsed", "offered", "sent", "completed", "errors", "dropped", "cpu_seconds", "run_queue_seconds"):
        yield "client", "whole", name, getattr(burst, name)
    yield "client", "whole", "rate", rate
    yield "client", "whole", "arrivals_seconds", seconds
    yield "client", "whole", "backlog", burst.offered - burst.completed_by(burst.started + seconds)
    yield "client", "whole", "turns", burst.answered * subject.turns + getattr(rig.load, "extra_turns", 0)
    window = burst.completed_by(last.moment) - burst.completed_by(first.moment)
    yield "client", "window", "turns", window * subject.turns
    for name, times in (("latency", burst.latency), ("round_trip", burst.round_trip)):
        for statistic, value in (times or {}).items():
            yield "client", "whole", f"{name}_{statistic}", value
    yield from differences(start, end, "whole")
    yield from differences(first, last, "window")


def sweep(subject, results: Results, levels: int, repeats: int, seconds: float, say, network: dict | None = None) -> None:
    """All levels that `results` has not yet. `network`: of a FaultProxy before the server."""
    order = [step for step in plan(subject.name, levels, repeats) if step[:2] not in results.done]
    if not order:
        say(f"{subject.name}: complete already")
        return
    with Rig(subject, network) as rig:
        measured = capacity(rig, min(2.0, seconds))
        # A resumed sweep goes on against the capacity it began with, or its levels would not be comparable.
        if results.capacity is None:
            results.write_capacity(measured)
        say(f"{subject.name}: capacity {measured:.0f}/s, levels against {results.capacity:.0f}/s")
        # Gauges are sampled once a second, and look back on up to a second more than their window: not on what was before.
        with rig.tacho(window=max(2.0, seconds - 3)) as tacho:
            for number, (load, repeat, seed) in enumerate(order, 1):
                rows = list(measure(rig, tacho, load * results.capacity, seconds, seed))
                results.write(load, repeat, rows)
                told = {(interval, name): value for _, interval, name, value in rows}
                say(
                    f"{subject.name} {number}/{len(order)}: load {load:.2f}, client {told['whole', 'turns']:.0f}, tacho "
                    f"{told.get(('whole', 'tacho_requests_total'), 0):.0f}, p99 {1000 * told.get(('whole', 'latency_p99'), 0):.1f} ms, "
                    f"CPU {told['window', 'cpu_seconds'] / told['window', 'seconds']:.2f}"
                )
