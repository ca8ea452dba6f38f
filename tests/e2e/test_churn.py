"""Cgroups that come, serve and go by the hundred leave nothing behind."""

import pytest

from support.cgroup import Cgroup
from support.clients import exact
from support.footprint import Footprint
from support.net import listening_ports
from support.servers import ExactServer
from support.tacho import Tacho, target
from support.waiting import wait_until

ROUNDS = 300
WARM_UP = 30
REQUESTS = 23
MEGABYTE = 1 << 20


def serve_and_vanish(parent, number: int, tacho) -> None:
    with Cgroup(f"c{number}", parent) as group, ExactServer(group.prefix) as server:
        wait_until(lambda: tacho.scrape().target_of(group.path), 2, "the new cgroup")
        name = tacho.scrape().target_of(group.path)
        exact(server.address, REQUESTS, connections=2)
        wait_until(lambda: tacho.requests(name) >= REQUESTS, 2, "its requests")
        assert tacho.requests(name) == REQUESTS


def forgets_closed_ports(tacho) -> bool:
    """Does it know of no more listening ports than there are?"""
    return Footprint(tacho).listening_ports <= len(listening_ports())


def alone(tacho) -> bool:
    samples = tacho.scrape()
    return samples.get("tacho_targets") == 0 and not samples.has("tacho_requests_total")


def test_churn_leaks_nothing(cgroups):
    parent = cgroups("churn")
    with Tacho({"targets": [target("c", f"{parent.path}/c*")], "limits": {"max_targets": 16}}) as tacho:
        for number in range(WARM_UP):
            serve_and_vanish(parent, number, tacho)
        wait_until(lambda: alone(tacho), 5, "no target is left")
        before = Footprint(tacho)
        for number in range(WARM_UP, WARM_UP + ROUNDS):
            serve_and_vanish(parent, number, tacho)
        wait_until(lambda: alone(tacho), 5, "no target is left")
        wait_until(lambda: forgets_closed_ports(tacho), 5, "no closed port is remembered")
        after = Footprint(tacho)
        lost = {str(labels): value for labels, value in tacho.scrape().all("tacho_lost_events_total")
                if value and labels["reason"] != "skipped"}  # fmt: skip

    assert after.series == before.series
    assert after.map_entries == before.map_entries
    assert after.descriptors == before.descriptors
    assert after.sockets <= before.sockets + 2
    assert after.resident - before.resident < MEGABYTE, f"grew by {after.resident - before.resident} bytes"
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
        after = Footprint(tacho)
    assert after.descriptors == before.descriptors
    assert after.sockets <= before.sockets + 2
    assert sum(after.map_entries.values()) <= sum(before.map_entries.values()) + 1  # `other` stays
