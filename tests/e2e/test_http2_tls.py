"""HTTP/2 under TLS is told from HTTP/1.1 under TLS, where nothing but records is seen; used serially, its times are true."""

import contextlib
import dataclasses
import statistics

import pytest

from support.clients import ab
from support.clients.curl import curl_times
from support.clients.h2load import h2load
from support.servers import Apache, HAProxy, Nginx, NodeTls
from support.tacho import Tacho, target
from support.waiting import wait_until

WINDOW = {"window": "2s", "histograms": {"buckets_per_octave": 4}}
CONNECTIONS = 4
# A quantile's place in its bucket is not known: with four buckets an octave they are up to 25 % wide.
BUCKET = 1.25


def apache(prefix):
    return Apache(prefix, model="event", http2=True)


@contextlib.contextmanager
def haproxy(prefix):
    with Nginx() as back, HAProxy(back.address, prefix, http2=True) as front:
        yield front


SERVERS = {
    "nginx 1.3": lambda prefix: Nginx(prefix, tls="TLSv1.3", tls_options="http2"),
    "nginx 1.2": lambda prefix: Nginx(prefix, tls="TLSv1.2", tls_options="http2"),
    "apache": apache,
    "haproxy": haproxy,
    "node": NodeTls,
}


def condition(tacho) -> float:
    return tacho.scrape().get("tacho_target_condition", target="server", condition="multiplexed")


@pytest.mark.parametrize("name", SERVERS)
def test_several_streams_raise_the_condition_and_http1_does_not(cgroups, agree, name):
    group = cgroups("server")
    with SERVERS[name](group.prefix) as server, Tacho({"targets": [target("server", group.path)], **WINDOW}) as tacho:
        with tacho.watch("server") as change:
            # curl offers HTTP/2, as browsers do, and takes HTTP/1.1.
            first = len(curl_times(server.tls_url("/static"), 20, http="--http1.1"))
            counted = ab(server.tls_url("/static"), 503, connections=CONNECTIONS, keep_alive=True)
            counted = dataclasses.replace(counted, requests=counted.requests + first)
        agree(f"{name}, HTTP/1.1 under TLS", counted, change)
        assert change.of("tacho_multiplexed_connections_total") == 0
        assert condition(tacho) == 0
        with tacho.watch("server") as change:
            h2load(server.tls_url("/static"), requests=5003, connections=CONNECTIONS, streams=10)
        wait_until(lambda: condition(tacho) == 1, 4, "the condition")
        assert change.of("tacho_multiplexed_connections_total") == CONNECTIONS


def test_serial_requests_have_true_times(cgroups):
    """One at a time, half a second and more apart: neither pauses nor acknowledged settings are anybody's time."""
    group = cgroups("server")
    with SERVERS["nginx 1.3"](group.prefix) as server, Tacho({"targets": [target("server", group.path)], **WINDOW}) as tacho:
        with tacho.watch("server") as change:
            times = curl_times(server.tls_url("/static"), 8, http="--http2", a_minute=60)
        assert change.of("tacho_handshakes_total") in (1, 2)
        # The settings are acknowledged apart from any request: a message that nobody answers.
        assert len(times) <= change.requests <= len(times) + 1
        longest = change.quantile("tacho_request_duration_seconds", 0.99)
        assert longest <= 1.15 * BUCKET * max(times) + 100e-6, (longest, times)
        assert change.of("tacho_request_duration_seconds_sum") < 2 * len(times) * statistics.fmean(times) + 0.01
