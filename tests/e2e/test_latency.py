"""Tacho's durations against the client's latencies, at low, medium and high load.

A request's duration is a part of what the client sees: it ends when the reply leaves the server, not when the client
comes to read it. Client and server share this machine's few cores, and a client that is busy lets replies lie. Tacho
sees that as well, on the client's own sockets: `tacho_dependency_duration_seconds` ends when the reply arrives there.
So where the client's latency is more than 15 % + 100 µs above tacho's, the time up to the arrival must not be.
"""

import statistics

import pytest

from support import ledger
from support.clients.pgbench import initialize, pgbench_latencies
from support.clients.redis_benchmark import redis_latencies
from support.clients.wrk import wrk_latencies
from support.servers import Nginx, Postgres, Redis
from support.tacho import Tacho, target

# A quantile's place in its bucket is not known: with four buckets an octave they are 19 % wide.
BUCKET = 1.19


def pgbench_quantiles(server, connections, prefix):
    latencies = pgbench_latencies(server, transactions=12_000 // connections, connections=connections, prefix=prefix)
    cuts = statistics.quantiles(latencies, n=100)
    return cuts[49], cuts[98]


LOADS = {
    "redis": (Redis, lambda server, c, prefix: redis_latencies(server.port, 30_000 * min(c, 5), c, prefix)),
    "nginx": (Nginx, lambda server, c, prefix: wrk_latencies(server.url("/return"), c, prefix=prefix)),
    "postgresql": (Postgres, pgbench_quantiles),
}


def close(part: float, whole: float) -> bool:
    return whole <= 1.15 * part * BUCKET + 100e-6


@pytest.mark.parametrize("connections", [1, 8, 40])
@pytest.mark.parametrize("name", LOADS)
def test_quantiles(cgroups, name, connections):
    server_class, load = LOADS[name]
    served, asking = cgroups(name), cgroups("client")
    config = {
        "targets": [target("server", served.path), target("client", asking.path)],
        "histograms": {"buckets_per_octave": 4},
    }
    with server_class(served.prefix) as server, Tacho(config) as tacho:
        if name == "postgresql":
            initialize(server)
        with tacho.watch("server") as server_side, tacho.watch("client") as client_side:
            counted = load(server, connections, asking.prefix)
    for q, latency in zip((0.50, 0.99), counted):
        duration = server_side.quantile("tacho_request_duration_seconds", q)
        arrival = client_side.quantile("tacho_dependency_duration_seconds", q)
        line = f"{name}, {connections} connections, p{100 * q:.0f}: client {latency * 1e6:.0f} µs, "
        line += f"reply arrived {arrival * 1e6:.0f} µs, tacho {duration * 1e6:.0f} µs"
        ledger.note(line)
        assert duration <= latency * BUCKET, line
        assert close(duration, latency) or close(duration, arrival), line
