"""Cgroups that come, serve and go by the hundred leave nothing behind."""

import contextlib
import resource
import time

import pytest

from support.cgroup import Cgroup
from support.clients import exact
from support.cpu import waited_for_cpu
from support.footprint import Footprint
from support.net import listening_ports
from support.servers import ExactServer
from support.slow import SKIPPED
from support.tacho import Tacho, target
from support.waiting import wait_until

ROUNDS = 40 if SKIPPED else 300
WARM_UP = 30
REQUESTS = 23
MEGABYTE = 1 << 20


def serve_and_vanish(parent, number: int, tacho) -> None:
    with Cgroup(f"c{number}", parent) as group, ExactServer(group.prefix) as server:
        wait_until(lambda: tacho.scrape().target_of(group.path), 2, "the new cgroup")

        def requests() -> int:
            """Its own: those before it are there until they have been read long enough."""
            return int(tacho.scrape().get("tacho_requests_total", target="c", cgroup=group.path))

        exact(server.address, REQUESTS, connections=2)
        wait_until(lambda: requests() >= REQUESTS, 2, "its requests")
        assert requests() == REQUESTS


def forgets_closed_ports(tacho) -> bool:
    """Does it know of no more listening ports than there are?"""
    return Footprint(tacho).listening_ports <= len(listening_ports())


def alone(tacho) -> bool:
    samples = tacho.scrape()
    return samples.get("tacho_targets") == 0 and not samples.has("tacho_requests_total")


def footprint_like(before: Footprint, tacho) -> Footprint:
    """Once the descriptors are those of `before`: the page of our own last scrape is one until all of it is sent."""
    wait_until(lambda: Footprint(tacho).descriptors == before.descriptors, 5, f"the descriptors are {before.descriptors}")
    return Footprint(tacho)


def test_churn_leaks_nothing(cgroups):
    parent = cgroups("churn")
    with Tacho({"targets": [target("c", f"{parent.path}/c*")], "limits": {"max_targets": 16}}) as tacho:
        for number in range(WARM_UP):
            serve_and_vanish(parent, number, tacho)
        wait_until(lambda: alone(tacho), 30, "no target is left")
        before = Footprint(tacho)
        for number in range(WARM_UP, WARM_UP + ROUNDS):
            serve_and_vanish(parent, number, tacho)
        wait_until(lambda: alone(tacho), 30, "no target is left")
        wait_until(lambda: forgets_closed_ports(tacho), 5, "no closed port is remembered")
        after = footprint_like(before, tacho)
        lost = {str(labels): value for labels, value in tacho.scrape().all("tacho_lost_events_total")
                if value and labels["reason"] != "skipped"}  # fmt: skip

    assert after.series == before.series
    assert after.map_entries == before.map_entries
    assert after.sockets <= before.sockets + 2
    assert after.written - before.written < MEGABYTE, f"grew by {after.written - before.written} bytes"
    assert not lost


@pytest.mark.parametrize("limit", [8])
def test_many_at_once_and_all_gone(cgroups, limit):
    """More cgroups at a time than places: overflow and reuse of places while others go."""
    parent = cgroups("burst")
    config = {"targets": [target("b", f"{parent.path}/b*")], "limits": {"max_targets": limit}}
    with Tacho(config) as tacho:
        for number in range(6):
            if number == 1:  # with as many targets remembered as there are places
                before = Footprint(tacho)
            groups = [Cgroup(f"b{number}", parent) for number in range(3 * limit)]
            wait_until(lambda: tacho.scrape().get("tacho_targets") >= limit, 2, "all places are taken")
            for group in groups:
                group.remove()
            wait_until(lambda: tacho.scrape().get("tacho_targets") <= 1, 5, "places are free again")
        after = footprint_like(before, tacho)
    assert after.sockets <= before.sockets + 2
    assert sum(after.map_entries.values()) <= sum(before.map_entries.values()) + 1  # `other` stays


def slowest_scrape(tacho, until) -> float:
    """Of those made one after the other until `until(text)` holds, at least ten; seconds."""
    slowest, made, deadline = 0.0, 0, time.monotonic() + 60
    while True:
        start = time.monotonic()
        text = tacho.text()
        slowest = max(slowest, time.monotonic() - start)
        made += 1
        if made >= 10 and until(text):
            return slowest
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_no_scrape_waits_for_targets_that_end(cgroups):
    """Their blocks are taken from the programs, which have to be waited for: not by who reads."""
    parent = cgroups("ends")
    config = {"targets": [target("e", f"{parent.path}/e*")], "limits": {"max_targets": 300}}
    with Tacho(config) as tacho:
        groups = [Cgroup(f"e{number}", parent) for number in range(256)]
        wait_until(lambda: "\ntacho_targets 256\n" in tacho.text(), 20, "all are there")
        before = slowest_scrape(tacho, lambda text: True)
        for group in groups:
            group.remove()
        ending = slowest_scrape(tacho, lambda text: "tacho_requests_total{" not in text)
        after = slowest_scrape(tacho, lambda text: True)
        assert "\ntacho_targets 0\n" in tacho.text()
    assert max(ending, after) <= before + 0.2


@pytest.mark.parametrize("older", [True, False], ids=["older than tacho", "made while it runs"])
def test_a_thousand_targets_with_a_thousand_descriptors(cgroups, older):
    """A soft and hard limit of 1024, far fewer than the blocks of so many targets need at once."""
    parent = cgroups("burst")
    config = {"targets": [target("b", f"{parent.path}/b*")], "limits": {"max_targets": 1000}}
    limited = ["sh", "-c", 'ulimit -n 1024; exec "$@"', "sh"]
    with contextlib.ExitStack() as stack:
        def make():
            return [stack.enter_context(Cgroup(f"b{number}", parent)) for number in range(1000)]

        groups = make() if older else []
        with Tacho(config, prefix=limited) as tacho:
            groups = groups or make()
            made, waited = time.monotonic(), waited_for_cpu(tacho.pid)
            wait_until(lambda: len(tacho.targets()["targets"]) == len(groups), 30, "all are watched")
            # On a machine that does other things, too: what it would have taken alone. What it idles counts.
            waited = waited_for_cpu(tacho.pid) - waited
            taken = time.monotonic() - made - waited
            print(f"{taken:.2f} s, and {waited:.2f} s for which the main thread had no CPU")
            samples = tacho.scrape()
    assert taken < 3
    assert samples.get("tacho_targets") == 1000
    assert samples.get("tacho_targets_failed_total") == 0


def test_targets_that_cannot_be_added_are_counted_and_tried_again(cgroups):
    """With too few descriptors for the blocks of a single target, until the limit is raised."""
    parent = cgroups("refused")
    with Tacho({"targets": [target("r", f"{parent.path}/r*")]}) as tacho:
        groups = [Cgroup(f"r{number}", parent) for number in range(2)]
        wait_until(lambda: tacho.scrape().get("tacho_targets") == 2, 5, "two targets")
        tacho.settled("r")
        soft, hard = resource.prlimit(tacho.pid, resource.RLIMIT_NOFILE)
        limit = len(tacho.descriptors()) + 3
        resource.prlimit(tacho.pid, resource.RLIMIT_NOFILE, (limit, hard))
        groups += [Cgroup(f"r{number}", parent) for number in range(2, 12)]
        time.sleep(2.5)  # in which nothing can be asked: it has no descriptor for us, either
        resource.prlimit(tacho.pid, resource.RLIMIT_NOFILE, (soft, hard))
        wait_until(lambda: tacho.scrape().get("tacho_targets") == 12, 5, "all targets")
        assert tacho.scrape().get("tacho_targets_failed_total") > 0
        for group in groups:
            group.remove()
