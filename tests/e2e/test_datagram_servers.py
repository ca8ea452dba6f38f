"""Servers of datagrams: name servers under dnsperf, time servers that ask others on the socket that they answer on."""

import pytest

from support.clients import dnsperf
from support.servers import Chrony, Knot
from support.servers.ntp import asked
from support.tacho import Tacho, target
from support.waiting import wait_until

QUERIES = [f"{host} A" for host in Knot.hosts]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_knot_over_udp(cgroups, agree, workers):
    """Knot receives and sends with recvmmsg and sendmmsg, each worker on a SO_REUSEPORT socket of its own."""
    group = cgroups("knot")
    with Knot(group.prefix, workers=workers) as server, Tacho({"targets": [target("knot", group.path)]}) as tacho:
        with tacho.watch("knot") as change:
            counted = dnsperf(server.port, QUERIES, runs=100, sockets=4 * workers)
    agree(f"Knot, UDP, {workers} worker{'s' * (workers > 1)}", counted, change)
    assert change.requests == change.sends == change.receives
    # From the arrival at the server's socket to the reply: a part of what the client waits.
    mean = change.of("tacho_request_duration_seconds_sum") / change.requests
    assert 0 < mean <= counted.latency
    assert change.of("tacho_request_queue_seconds_sum") <= change.of("tacho_request_duration_seconds_sum")


def test_knot_over_tcp(cgroups, agree):
    """dnsperf sends the next query when it has the answer."""
    group = cgroups("knot")
    with Knot(group.prefix) as server, Tacho({"targets": [target("knot", group.path)]}) as tacho:
        with tacho.watch("knot") as change:
            counted = dnsperf(server.port, QUERIES, runs=1, sockets=1, outstanding=1, protocol="tcp")
    agree("Knot, TCP", counted, change)


def test_time_server_that_polls_on_its_own_socket(cgroups):
    """Who spoke first decides: what clients ask are requests, what the upstream is asked are calls."""
    ours, upstream = cgroups("chrony"), cgroups("upstream")
    targets = [target("chrony", ours.path), target("upstream", upstream.path)]
    with Tacho({"targets": targets}) as tacho, Chrony(prefix=upstream.prefix) as back:
        tacho.wait_for_target("chrony")

        def calls() -> float:
            return tacho.scrape().sum("tacho_dependency_calls_total", target="chrony", peer=back.address)

        with Chrony(back.port, ours.prefix) as front:
            wait_until(lambda: calls() > 3, 30, "polls of the upstream")
            before = tacho.requests("chrony")
            assert asked(front.address, 503) == 503
            assert tacho.requests("chrony") - before == 503
            polled = calls()
            wait_until(lambda: calls() > polled + 20, 30, "more polls of the upstream")
            assert tacho.requests("chrony") - before == 503
        after = tacho.scrape()
        # The upstream has had one request more: whether it is ready.
        assert calls() == after.get("tacho_requests_total", target="upstream") - 1
        assert after.get("tacho_requests_in_flight", target="chrony") == 0
        assert after.get("tacho_requests_unanswered_total", target="chrony") == 0
