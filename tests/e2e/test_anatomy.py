"""What requests waited for, on real servers under loads that make them wait for something known."""

import dataclasses
import json
import re
import subprocess
import time
import urllib.request

import pytest

from support import ledger, paths
from support.clients.open_loop import OpenLoop
from support.clients.pgbench import PgbenchRate, initialize
from support.servers import Gunicorn, Postgres, Waitress
from support.tacho import Tacho, target

PARTS = ("queue", "receive", "handover", "cpu", "runqueue", "lock", "disk", "network", "event", "sleep", "other")
WORK = ("cpu", "lock", "disk", "network", "event", "sleep", "other")  # of the thread that worked on it
MODES = ("same_thread", "handed_over", "interleaved", "unknown")


def watching(group, name: str) -> dict:
    return {"targets": [target(name, group.path)], "probes": {"anatomy": {"enabled": True}}}


class Anatomy:
    """Of the requests of a Change: mean seconds by part, share by mode."""

    def __init__(self, change):
        served = {mode: change.of("tacho_request_serving_total", mode=mode) for mode in MODES}
        self.requests = change.of("tacho_requests_total")
        assert sum(served.values()) == self.requests
        known = self.requests - served["unknown"]
        self.share = {mode: count / self.requests for mode, count in served.items()}
        self.mean = {part: change.of("tacho_request_time_seconds_total", part=part) / known for part in PARTS}
        self.duration = change.of("tacho_request_duration_seconds_sum") / self.requests
        print(f"{self.requests:.0f} requests of {self.duration * 1e3:.2f} ms:",
              ", ".join(f"{part} {seconds * 1e3:.2f}" for part, seconds in self.mean.items() if seconds >= 5e-6),
              {mode: round(share, 3) for mode, share in self.share.items() if share})  # fmt: skip
        if not served["unknown"]:
            assert sum(self.mean.values()) == pytest.approx(self.duration, rel=1e-6)

    @property
    def first(self) -> str:
        return max(self.mean, key=self.mean.get)


def bursts(tacho, name, client, rates, seconds=5):
    for rate in rates:
        with tacho.watch(name) as change:
            assert client.run(rate, seconds).errors == 0
        yield Anatomy(change)


def test_a_pool_behind_a_reader(cgroups):
    """The work stays what it is; the hand-over grows as the load does."""
    group = cgroups("pool")
    with Waitress(group.prefix, module="waiting") as server, Tacho(watching(group, "pool")) as tacho:
        with OpenLoop(server.address, "http", "/20", connections=32) as client:
            low, high = bursts(tacho, "pool", client, (30, 150))
    for anatomy in low, high:
        assert anatomy.mean["sleep"] == pytest.approx(0.02, rel=0.15)
    assert low.first == "sleep"
    assert high.mean["handover"] > 3 * low.mean["handover"]


@dataclasses.dataclass(frozen=True)
class Level:
    """Mean seconds of a request at one rate."""

    rate: float
    client: float  # what the client saw, from when it sent
    client_waited: float  # of that at most: the client's own wait for a CPU
    outside: float  # unread, or not all there
    handover: float
    runqueue: float
    work: float

    @property
    def server(self) -> float:
        return self.outside + self.handover + self.runqueue + self.work


def level(tacho, name: str, client, rate: float, seed: int) -> Level:
    with tacho.watch(name) as change:
        burst = client.run(rate, 4, seed)
    assert not burst.errors and burst.completed == change.requests
    anatomy = Anatomy(change)
    assert anatomy.share["handed_over"] > 0.97
    # Waiting for a CPU is not work: on a busy machine that is others'.
    found = Level(
        rate=rate, client=burst.round_trip["mean"], client_waited=burst.run_queue_seconds / burst.completed,
        outside=anatomy.mean["queue"] + anatomy.mean["receive"], handover=anatomy.mean["handover"],
        runqueue=anatomy.mean["runqueue"], work=sum(anatomy.mean[part] for part in WORK),
    )  # fmt: skip
    service = change.of("tacho_request_service_seconds_sum") / anatomy.requests
    unknown = 2 * anatomy.share["unknown"]  # they are in the sum, and not in the parts
    assert found.handover + found.runqueue + found.work == pytest.approx(service, rel=0.01 + unknown)
    assert found.handover == pytest.approx(change.of("tacho_request_handover_seconds_sum") / anatomy.requests, rel=0.01)
    return found


def sweep(group, rates) -> list[Level]:
    # Ahead of others on the machine: what they add is added where the client sees it and the server does not.
    soon = ["nice", "-n", "-15"]
    with Waitress([*group.prefix, *soon], module="waiting") as server, Tacho(watching(group, "sweep")) as tacho:
        with OpenLoop(server.address, "http", "/20", connections=64, prefix=soon) as client:
            client.run(20, 1)  # threads that have not slept yet are not known
            levels = [level(tacho, "sweep", client, rate, seed) for seed, rate in enumerate(rates)]
    for each in levels:
        print({name: round(value * 1e3, 2) if name != "rate" else value for name, value in dataclasses.asdict(each).items()}, "ms")
    assert min(each.work for each in levels) >= 0.85 * max(each.work for each in levels)
    return levels


def test_the_queue_inside_a_pool_over_a_load_sweep(cgroups):
    """Up to more than four threads can do, 20 ms each: the work stays what it is, all else is the queue inside the server,
    and that is what makes the client wait."""
    for attempt in range(2):
        levels = sweep(cgroups(f"sweep-{attempt}"), (40, 80, 120, 160, 230))
        first, last = levels[0], levels[-1]
        if first.client - first.work < 0.008:
            break
    else:
        pytest.skip(f"the machine is too busy to compare the hand-over with what the client saw: {levels}")
    ledger.note("a pool over a load sweep, hand-over + work in ms: " + ", ".join(
        f"{each.rate}/s {1e3 * each.handover:.1f} + {1e3 * each.work:.1f}" for each in levels
    ))  # fmt: skip
    assert last.handover > 5 * first.handover and last.client > 2 * first.client, "the last level is more than it can do"
    for each in levels:
        beyond = each.client - each.server
        assert -0.0005 <= beyond <= 0.08 * each.client + 0.002 + each.client_waited, each
        # The hand-over grows as the client's latency does, but for waits of both for a CPU.
        grown, others = each.client - first.client, each.runqueue + each.outside + each.client_waited
        assert each.handover - first.handover == pytest.approx(grown, abs=0.1 * grown + 0.002 + others + first.runqueue), each


def test_processes_that_wait(cgroups):
    group = cgroups("waiting")
    with (
        Gunicorn(group.prefix, "gthread", module="waiting") as server,
        Tacho(watching(group, "waiting")) as tacho,
        OpenLoop(server.address, "http", "/20", connections=8) as client,
    ):
        (anatomy,) = bursts(tacho, "waiting", client, (40,))
    assert anatomy.first == "sleep"
    assert anatomy.mean["sleep"] == pytest.approx(0.02, rel=0.15)


def test_row_locks_of_postgresql(cgroups):
    """Who waits for another's row sleeps on a latch, in epoll."""
    group = cgroups("rows")
    with Postgres(group.prefix) as server, Tacho(watching(group, "rows")) as tacho:
        initialize(server)
        few, many = (
            next(bursts(tacho, "rows", PgbenchRate(server, connections=connections), (0,))) for connections in (1, 16)
        )
    assert few.mean["event"] < 0.1 * few.duration
    assert many.first == "event"
    assert many.share["same_thread"] > 0.99


def slowest(tacho, *arguments) -> subprocess.CompletedProcess:
    command = [paths.require(paths.TACHO), "slow", "--url", f"http://{tacho.address}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30)


def timed(address: str, path: str) -> float:
    began = time.monotonic()
    with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
        answer.read()
    return time.monotonic() - began


def test_the_slowest_requests_one_by_one(cgroups):
    """Of thousands those that took longest, with what each of them waited for."""
    group = cgroups("slow")
    asked = (120, 260, 190, 330, 150)
    with Gunicorn(group.prefix, "gthread", module="waiting") as server, Tacho(watching(group, "slow")) as tacho:
        with OpenLoop(server.address, "http", "/1", connections=8) as client:
            client.start(200, 4, seed=1)
            seen = [timed(server.address, f"/{milliseconds}") for milliseconds in asked]
            assert client.result(60).errors == 0
        answer = slowest(tacho, "--json")
        assert answer.returncode == 0, answer.stderr
        (told,) = json.loads(answer.stdout)["targets"]
        durations = [request["duration"] for request in told["requests"]]
        assert durations == sorted(durations, reverse=True)
        # Where the machine is busy, one of the thousands may have waited longer for a CPU.
        requests = [request for request in told["requests"] if request["parts"].get("sleep", 0) > 0.1]
        assert [round(request["parts"]["sleep"], 2) for request in requests] == [n / 1000 for n in sorted(asked, reverse=True)]
        for request, slept, client_saw in zip(requests, sorted(asked, reverse=True), sorted(seen, reverse=True)):
            # The client connects within its time.
            assert slept / 1000 <= request["duration"] <= client_saw
            assert sum(request["parts"].values()) == pytest.approx(request["duration"], rel=0.01)
            assert request["thread_name"] and request["thread"] > 0
            assert request["client"].startswith("127.0.0.1:")
        table = slowest(tacho, "slow")
        print(table.stdout)
        lines = table.stdout.splitlines()
        assert lines[0] == "slow" and re.search(r"33\d ms +\S*s{15,}\S* +sleep (9\d|100) %", lines[2]), lines[:3]
        none = slowest(tacho, "no such target")
        assert none.returncode == 1 and none.stderr == "tacho: no target matches no such target\n"
    off = slowest(tacho)
    assert off.returncode == 1 and "Connection refused" in off.stderr


def test_nothing_is_said_unless_it_is_asked_for(cgroups):
    group = cgroups("default")
    with Gunicorn(group.prefix) as server, Tacho({"targets": [target("default", group.path)]}) as tacho:
        with OpenLoop(server.address, "http", "/", connections=2, reconnect=True) as client, tacho.watch("default") as change:
            client.run(20, 1)
        answer = slowest(tacho)
    assert answer.returncode == 1 and "anatomy: {enabled: true}" in answer.stderr
    assert change.of("tacho_requests_total") > 0
    assert not change.after.all("tacho_request_time_seconds_total") and not change.after.all("tacho_request_serving_total")
