"""Real servers under their own load tools: every request that the client counted, and none that it did not send."""

import pytest

from support.clients import memcslap, pgbench, redis_benchmark, wrk
from support.clients.pgbench import initialize
from support.servers import Memcached, Nginx, Postgres, Redis
from support.tacho import Tacho, target


def test_redis(cgroups, agree):
    group = cgroups("redis")
    with Redis(group.prefix) as server, Tacho({"targets": [target("redis", group.path)]}) as tacho:
        before = int(server.info()["total_writes_processed"])
        with tacho.watch("redis") as change:
            counted = redis_benchmark(server.port, requests=400_000, connections=20)
        # The reply to the first INFO had not been written when redis counted for it.
        written = int(server.info()["total_writes_processed"]) - before - 1
        agree("redis", counted, change)
        assert change.requests == change.sends == written


@pytest.mark.parametrize("path, sends_a_reply", [("/return", 1), ("/static", 2)])
@pytest.mark.parametrize("workers", [1, 2])
def test_nginx(cgroups, agree, path, sends_a_reply, workers):
    group = cgroups("nginx")
    with Nginx(group.prefix, workers=workers) as server, Tacho({"targets": [target("nginx", group.path)]}) as tacho:
        with tacho.watch("nginx") as change:
            counted = wrk(server.url(path), connections=16, seconds=4)
        agree(f"nginx {path}, {workers} worker{'s' * (workers > 1)}", counted, change)
        # What the paper would have counted: wrong by the number of sends a reply takes (in flight at the end apart).
        assert abs(sends_a_reply * change.requests - change.sends) <= sends_a_reply * 16


def test_memcached(cgroups, agree):
    group = cgroups("memcached")
    with Memcached(group.prefix) as server, Tacho({"targets": [target("memcached", group.path)]}) as tacho:
        with tacho.watch("memcached") as change:
            counted = memcslap(server.port, requests=10_007, threads=8)
        stats = server.stats()
        agree("memcached", counted, change)
        assert change.requests == int(stats["cmd_get"]) + int(stats["cmd_set"])


def test_postgresql(cgroups, agree):
    group = cgroups("postgres")
    with Postgres(group.prefix) as server, Tacho({"targets": [target("postgres", group.path)]}) as tacho:
        initialize(server)
        with tacho.watch("postgres") as change:
            counted = pgbench(server, transactions=2003, connections=8)
        agree("PostgreSQL, TCP", counted, change)
