"""What requests waited for, on real servers under loads that make them wait for something known."""

import json
import re
import subprocess
import time
import urllib.request

import pytest

from support import paths
from support.clients.open_loop import OpenLoop
from support.clients.pgbench import PgbenchRate, initialize
from support.servers import Gunicorn, Postgres, Waitress
from support.tacho import Tacho, target

PARTS = ("queue", "receive", "handover", "cpu", "runqueue", "lock", "disk", "network", "event", "sleep", "other")
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
        requests = told["requests"][: len(asked)]
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
