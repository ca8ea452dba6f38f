"""Load that turns cannot count: the condition says so, and the rate of operations still follows the real rate."""

import socket
import statistics
import struct

import pytest

from support.clients.counted import find
from support.clients.h2load import h2load, h2load_at
from support.clients.pipelined import pipelined_pings
from support.clients.postgres import PostgresClient
from support.clients.tls import TlsConnection
from support.process import run
from support.servers import Nginx, Postgres, Redis, Script
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


BURST = 10
GET = b"GET /return HTTP/1.1\r\nHost: a\r\n\r\n"


def read_until(connection, what: bytes, count: int) -> None:
    """Until it has come so often."""
    got = b""
    while got.count(what) < count:
        part = connection.recv(65536)
        if not part:
            raise ConnectionError(f"the server closed the connection behind {got[-80:]!r}")
        got += part


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def first_read_of_http(server) -> int:
    for _ in range(50):
        with connect(server.port) as connection:
            connection.sendall(GET * BURST)
            read_until(connection, b"HTTP/1.1 200", BURST)
    return 50 * BURST


def http_after_a_while(server) -> int:
    for _ in range(10):
        with connect(server.port) as connection:
            for count in (1, 1, *[BURST] * 20):
                connection.sendall(GET * count)
                read_until(connection, b"HTTP/1.1 200", count)
    return 10 * (2 + 20 * BURST)


def first_read_of_redis(server) -> int:
    """Commands that begin alike but for a number."""
    for _ in range(50):
        with connect(server.port) as connection:
            connection.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n")
            read_until(connection, b"\r\n", 3)
    return 50 * 2


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def batches_of_postgres(server) -> int:
    """Log-in and a setting by themselves, then queries ten at a time."""
    query = message(b"P", b"\0SELECT 1\0\0\0") + message(b"B", bytes(8)) + message(b"E", bytes(5)) + message(b"S")
    for _ in range(10):
        with PostgresClient(server.port) as client:
            client.query("SET statement_timeout = 0")
            for _ in range(10):
                client.exchange(query * BURST, BURST)
    return 10 * (2 + 10 * BURST)


def mail_at_once(server) -> int:
    """MAIL, RCPT, RCPT and DATA together, as RFC 2920 has it."""
    for _ in range(20):
        with connect(server.port) as connection:
            for lines, last in (
                (b"", b"220"), (b"EHLO x\r\n", b"250 "),
                (b"MAIL FROM:<a@b.c>\r\nRCPT TO:<d@e.f>\r\nRCPT TO:<g@e.f>\r\nDATA\r\n", b"354"),
                (b"hello\r\n.\r\n", b"250"), (b"QUIT\r\n", b"221"),
            ):  # fmt: skip
                connection.sendall(lines)
                read_until(connection, last, 1)
    return 20 * 7


def records_at_once(server) -> int:
    """Each request in a record of its own, ten of them in a segment."""
    for _ in range(5):
        with TlsConnection(server.tls_port) as connection:
            for _ in range(20):
                connection.secured.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
                for _ in range(BURST):
                    connection.secured.sendall(GET)
                connection.secured.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)
                read_until(connection.secured, b"HTTP/1.1 200", BURST)
    return 5 * 20 * BURST


BURSTS = {
    "nginx, first read": (Nginx, first_read_of_http),
    "nginx, after a while": (Nginx, http_after_a_while),
    "redis": (Redis, first_read_of_redis),
    "PostgreSQL": (Postgres, batches_of_postgres),
    "SMTP": (lambda prefix: Script("smtp.py", prefix), mail_at_once),
    "nginx under TLS": (lambda prefix: Nginx(prefix, tls="TLSv1.3"), records_at_once),
}


@pytest.mark.parametrize("name", BURSTS)
def test_bursts_raise_the_condition(cgroups, name):
    """Also of connections that are over soon, or begin without any."""
    start, load = BURSTS[name]
    group = cgroups("server")
    with start(group.prefix) as server, Tacho({"targets": [target("server", group.path)], **WINDOW}) as tacho:
        tacho.wait_for_target("server")
        assert not multiplexed(tacho, "server")
        with tacho.watch("server") as change:
            asked = load(server)
        wait_until(lambda: multiplexed(tacho, "server"), 4, "the condition")
        assert change.requests < asked


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
