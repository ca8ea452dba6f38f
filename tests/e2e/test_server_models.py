"""Ways to build a server: event loops, processes, threads, io_uring, other runtimes. None may change the count."""

import pytest

from support.clients import ab, exact, wrk
from support.prometheus import Prometheus
from support.servers import Apache, AsyncioEcho, Gunicorn, UringServer, Waitress
from support.tacho import Tacho, target


def observe(cgroups, start, load):
    """Runs load(server) against start(prefix). Returns (what the client counted, tacho's change)."""
    group = cgroups("model")
    with start(group.prefix) as server, Tacho({"targets": [target("model", group.path)]}) as tacho:
        with tacho.watch("model") as change:
            counted = load(server)
    return counted, change


@pytest.mark.parametrize("per_connection", [0, 1])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"read_write": "true"},
        {"multishot": "true"},
        {"submission_thread": "true"},
        {"zero_copy": "true", "reply_bytes": 100_000},
    ],
)
def test_io_uring(cgroups, agree, options, per_connection):
    reply = options.get("reply_bytes", 64)
    tallies = []

    def load(server):
        counted = exact(
            server.address, 1009, connections=5, requests_per_connection=per_connection, reply_bytes=reply
        )
        tallies.append(server.finish())
        return counted

    counted, change = observe(cgroups, lambda prefix: UringServer(prefix, **options), load)
    flavour = ", ".join(option.replace("_", " ") for option in options if option != "reply_bytes") or "plain"
    agree(f"io_uring, {flavour}, {'connection per request' if per_connection else 'kept'}", counted, change)
    assert change.requests == tallies[0]["requests"] == 1009
    assert change.of("tacho_connections_total", role="server") == tallies[0]["connections"]


def test_io_uring_on_a_unix_socket(cgroups, agree, tmp_path):
    counted, change = observe(
        cgroups,
        lambda prefix: UringServer(prefix, listen=f"unix:{tmp_path}/socket", multishot="true"),
        lambda server: exact(server.address, 1009, connections=5),
    )
    agree("io_uring, unix socket", counted, change)


@pytest.mark.parametrize("unix", [False, True])
def test_asyncio(cgroups, agree, unix):
    counted, change = observe(
        cgroups,
        lambda prefix: AsyncioEcho(prefix, unix=unix),
        lambda server: exact(server.address, 2003, connections=5, request_bytes=64, reply_bytes=64),
    )
    agree(f"asyncio, {'unix socket' if unix else 'TCP'}", counted, change)


@pytest.mark.parametrize("model", ["prefork", "worker", "event"])
@pytest.mark.parametrize("keep_alive", [False, True])
def test_apache(cgroups, agree, model, keep_alive):
    counted, change = observe(
        cgroups,
        lambda prefix: Apache(prefix, model=model),
        lambda server: ab(server.url("/static"), 1009, keep_alive=keep_alive),
    )
    agree(f"Apache, {model}, {'kept' if keep_alive else 'connection per request'}", counted, change)


def test_pre_forked_processes(cgroups, agree):
    counted, change = observe(cgroups, lambda prefix: Gunicorn(prefix, workers=3), lambda server: ab(server.url, 503))
    agree("gunicorn, 3 processes", counted, change)


def test_thread_pool(cgroups, agree):
    counted, change = observe(
        cgroups,
        lambda prefix: Gunicorn(prefix, kind="gthread", workers=1),
        lambda server: ab(server.url, 503, keep_alive=True),
    )
    agree("gunicorn, a pool of threads", counted, change)


def test_threads_behind_an_event_loop(cgroups, agree):
    counted, change = observe(cgroups, Waitress, lambda server: ab(server.url, 503, keep_alive=True))
    agree("waitress", counted, change)


def test_go(cgroups, agree):
    """Prometheus itself: Go's net/http, goroutines on threads of the runtime, which polls for them."""
    counted, change = observe(
        cgroups,
        lambda prefix: Prometheus({}, prefix=prefix),
        lambda server: wrk(f"http://{server.address}/-/healthy", connections=8, seconds=2),
    )
    agree("Prometheus (Go net/http)", counted, change)
