"""What tacho costs: the same requests at the same times, with tacho and without, in turns.

Columns: pair, watched (0 or 1), load (0: a closed loop, for the throughput), then what came of it.
"""

import csv
import pathlib
import random

from validation.rig import Rig, capacity

COLUMNS = ["pair", "watched", "load", "rate", "p50", "p99", "cpu_per_request"]
# Of the capacity; 0 is the closed loop.
LOADS = (0.3, 0.6, 0.85, 0.0)


def overhead(subject, file: pathlib.Path, pairs: int, seconds: float, say) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    chance = random.Random(subject.name)
    with Rig(subject) as rig, open(file, "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(COLUMNS)
        most = capacity(rig, min(2.0, seconds))
        for pair in range(pairs):
            seed = chance.randrange(2**31)
            # Whoever comes second has warm caches, or a disk that is fuller.
            for watched in chance.sample((0, 1), 2):
                writer.writerows([pair, watched, *row] for row in _turn(rig, watched, most, seconds, seed))
            out.flush()
            say(f"{subject.name}: pair {pair + 1} of {pairs}")


def _turn(rig: Rig, watched: int, most: float, seconds: float, seed: int):
    tacho = rig.tacho() if watched else None
    try:
        for load in LOADS:
            before = rig.truth()["cpu_seconds"]
            burst = rig.load.run(load * most, seconds, seed)
            cpu = (rig.truth()["cpu_seconds"] - before) / burst.completed
            rate = burst.completed_by(burst.started + seconds) / seconds
            yield load, rate, burst.latency["p50"], burst.latency["p99"], cpu
    finally:
        if tacho:
            tacho.__exit__(None, None, None)


def ratios(file: pathlib.Path) -> dict[str, list[float]]:
    """With tacho over without, of each pair: p99 at all loads, throughput of the closed loop, CPU time a request."""
    with open(file, newline="") as source:
        rows = {(row["pair"], row["load"], row["watched"]): row for row in csv.DictReader(source)}
    found: dict[str, list[float]] = {"p50": [], "p99": [], "throughput": [], "cpu": []}
    for (pair, load, watched), row in rows.items():
        bare = rows.get((pair, load, "0"))
        if watched == "0" or bare is None:
            continue

        def ratio(column: str) -> float:
            return float(row[column]) / float(bare[column])

        found["cpu"].append(ratio("cpu_per_request"))
        if float(load):
            found["p50"].append(ratio("p50"))
            found["p99"].append(ratio("p99"))
        else:
            found["throughput"].append(ratio("rate"))
    return found
