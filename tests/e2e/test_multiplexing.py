"""Load that turns cannot count: the condition says so, and the rate of operations still follows the real rate."""

import statistics

import pytest

from support.clients.counted import find
from support.clients.h2load import h2load, h2load_at
from support.clients.pipelined import pipelined_pings
from support.process import run
from support.servers import Nginx, Redis
from support.tacho import Tacho, target
from support.waiting import wait_until

WINDOW = {"window": "2s"}


def multiplexed(tacho, name) -> bool:
    return tacho.scrape().get("tacho_target_condition", target=name, condition="multiplexed") == 1


def r_squared(pairs) -> float:
    """Of a straight line through (rate of the client, rate of the operations), as the paper fits it."""
    return statistics.correlation(*zip(*pairs)) ** 2


def test_pipelined_load_raises_the_condition(cgroups):
    group = cgroups("redis")
    with Redis(group.prefix) as server, Tacho({"targets": [target("redis", group.path)], **WINDOW}) as tacho:
        assert not multiplexed(tacho, "redis")
        command = ["redis-benchmark", "-h", "127.0.0.1", "-p", server.port, "-n", 400_000, "-c", 20, "-P", 16, "-t", "get"]
        with tacho.watch("redis") as change:
            report = run(command, timeout=120)
        requests = int(find(r"(\d+) requests completed", report, "redis-benchmark")[1])
        wait_until(lambda: multiplexed(tacho, "redis"), 4, "the condition")
        # A turn is a batch: what the series says without the condition.
        assert change.requests == pytest.approx(requests / 16, rel=0.05)


def test_http2_raises_the_condition_where_it_is_not_followed(cgroups):
    group = cgroups("nginx")
    with Nginx(group.prefix, listen="http2") as server:
        with Tacho({"targets": [target("nginx", group.path, http2=False)], **WINDOW}) as tacho:
            assert not multiplexed(tacho, "nginx")
            with tacho.watch("nginx") as change:
                counted = h2load(server.url("/return"), requests=100_003)
            wait_until(lambda: multiplexed(tacho, "nginx"), 4, "the condition")
            assert change.requests < counted.requests


def test_requests_one_by_one_do_not(cgroups):
    group = cgroups("redis")
    with Redis(group.prefix) as server, Tacho({"targets": [target("redis", group.path)], **WINDOW}) as tacho:
        tacho.wait_for_target("redis")
        pipelined_pings(server.port, batches=30_011, batch=1)
        samples = wait_until(lambda: (s := tacho.scrape()).get("tacho_observed_rps", target="redis") > 0 and s, 4, "the window")
        assert samples.get("tacho_target_condition", target="redis", condition="multiplexed") == 0


def sweep(tacho, name, levels, load) -> list[tuple[float, float]]:
    """(requests, sends) a second at each level."""
    pairs = []
    for level in levels:
        with tacho.watch(name) as change:
            counted = load(level)
        pairs.append((counted.rate, change.sends / counted.seconds))
    return pairs


def test_operations_follow_a_pipelined_load(cgroups):
    group = cgroups("redis")
    with Redis(group.prefix) as server, Tacho({"targets": [target("redis", group.path)]}) as tacho:
        pairs = sweep(
            tacho, "redis", (50, 100, 200, 400, 800), lambda rate: pipelined_pings(server.port, int(1.5 * rate), rate=rate)
        )
        assert r_squared(pairs) >= 0.99, pairs


def test_operations_follow_an_http2_load(cgroups):
    group = cgroups("nginx")
    with Nginx(group.prefix, listen="http2") as server, Tacho({"targets": [target("nginx", group.path)]}) as tacho:
        pairs = sweep(
            tacho, "nginx", (400, 800, 1600, 3200, 6400), lambda rate: h2load_at(server.url("/return"), rate, seconds=2)
        )
        assert r_squared(pairs) >= 0.99, pairs
