"""A name server under dnsperf: an answer a query, with one worker and with several that share the port."""

import pytest

from support.clients import dnsperf
from support.servers import Knot
from support.tacho import Tacho, target

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
