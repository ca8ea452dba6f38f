"""Real servers under their own load tools: every request that the client counted, and none that it did not send."""

import pytest

from support.clients import Counted, memcslap, pgbench, redis_benchmark, wrk
from support.clients.curl import curl_times
from support.clients.pgbench import initialize
from support.servers import Memcached, Nginx, Node, Postgres, Redis, Waitress
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


@pytest.mark.parametrize("kind, url", [(Waitress, "/"), (Node, "/1")])
def test_uploads_that_wait_until_they_may_go_on(cgroups, agree, tmp_path, kind, url):
    """curl sends the body when it has `100 Continue`: Waitress reads it then, Node replies at once and reads it afterwards."""
    uploads = 101
    body = tmp_path / "body"
    body.write_bytes(b"b" * 3000)
    group = cgroups("upload")
    with kind(group.prefix) as server, Tacho({"targets": [target("upload", group.path)]}) as tacho:
        with tacho.watch("upload") as change:
            more = ["--header", "Expect: 100-continue", "--data-binary", f"@{body}"]
            curl_times(f"http://{server.address}{url}", uploads, "--http1.1", more=more)
        agree(f"{server.name}, 100 Continue", Counted("curl", uploads, 1), change)
        assert change.of("tacho_oneway_messages_total") == 0
