"""The servers of the validation: how each is started, what is asked of it, and why that.

A request has to make the server the bottleneck, not the client: on each there is work of 50 µs … 5 ms. Where the work is a
number in the request it is drawn evenly from a range, so that service times vary.
"""

import contextlib
import dataclasses
import socket
from collections.abc import Callable

from support.clients.open_loop import OpenLoop
from support.clients.pgbench import PgbenchRate, initialize
from support.process import run
from support.servers import (
    Apache, Go, Gunicorn, HAProxy, Java, Knot, MariaDB, Memcached, Nginx, Node, Postgres, Redis,
)  # fmt: skip

# Words and numbers: gzip has work with it, and finds something.
_TEXT = "".join(f"{number * 7919 % 10007} requests answered\n" for number in range(2600)).encode()[:65536]
_DEFLATE = """
LoadModule deflate_module {modules}/mod_deflate.so
LoadModule filter_module {modules}/mod_filter.so
SetOutputFilter DEFLATE
DeflateCompressionLevel 1
"""
_ACCEPT_GZIP = "Accept-Encoding: gzip\r\n"


@dataclasses.dataclass(frozen=True)
class Subject:
    """`open` yields a load on a fresh server; both run behind the prefixes (server, client) it is given.

    A load has `start(rate, seconds, seed)` and `result(timeout)`, and each burst is `turns` requests a completed one, plus
    `extra_turns` of the load. `limit_cores`: what the server may use, here always the one CPU it is pinned to.
    """

    name: str
    model: str
    request: str
    open: Callable
    turns: int = 1
    limit_cores: float = 1.0


def _connected(server, protocol: str, request: str, **options):
    @contextlib.contextmanager
    def opened(server_prefix, client_prefix):
        with server(server_prefix) as running, OpenLoop(running.address, protocol, request, client_prefix, **options) as load:
            yield load

    return opened


@contextlib.contextmanager
def _nginx(server_prefix, client_prefix):
    with Nginx(server_prefix, locations="gzip on; gzip_types *; gzip_comp_level 1;") as server:
        (server.directory / "text").write_bytes(_TEXT)
        with OpenLoop(server.address, "http", "/text", client_prefix, headers=_ACCEPT_GZIP) as load:
            yield load


def _apache(model: str):
    @contextlib.contextmanager
    def opened(server_prefix, client_prefix):
        with Apache(server_prefix, model, _DEFLATE) as server:
            (server.directory / "www" / "text").write_bytes(_TEXT)
            with OpenLoop(server.address, "http", "/text", client_prefix, headers=_ACCEPT_GZIP) as load:
                yield load

    return opened


@contextlib.contextmanager
def _redis(server_prefix, client_prefix):
    with Redis(server_prefix) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            for key, step in (("a", 2), ("b", 3)):
                members = " ".join(f"m{number * step}" for number in range(3000))
                connection.sendall(f"SADD {key} {members}\r\n".encode())
                if not connection.recv(64).startswith(b":"):
                    raise RuntimeError("redis took no set")
        with OpenLoop(server.address, "redis", "SINTERCARD 2 a b", client_prefix) as load:
            yield load


@contextlib.contextmanager
def _memcached(server_prefix, client_prefix):
    with Memcached(server_prefix) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            for number in range(100):
                connection.sendall(f"set key{number} 0 0 50\r\n{'v' * 50}\r\n".encode())
                if not connection.recv(64).startswith(b"STORED"):
                    raise RuntimeError("memcached stored nothing")
        keys = " ".join(f"key{number}" for number in range(100))
        with OpenLoop(server.address, "memcached", f"get {keys}", client_prefix) as load:
            yield load


@contextlib.contextmanager
def _postgres(server_prefix, client_prefix):
    query = "SELECT sum(abalance) FROM pgbench_accounts WHERE aid BETWEEN {} AND 5000"
    with Postgres(server_prefix) as server:
        initialize(server)
        with OpenLoop(server.address, "postgres", query, client_prefix, numbers=5000) as load:
            yield load


@contextlib.contextmanager
def _postgres_writes(server_prefix, client_prefix):
    with Postgres(server_prefix, durable=True) as server:
        initialize(server, scale=4)
        yield PgbenchRate(server, prefix=client_prefix)


@contextlib.contextmanager
def _mariadb(server_prefix, client_prefix):
    with MariaDB(server_prefix) as server:
        fill = "CREATE DATABASE v; CREATE TABLE v.t (a INT PRIMARY KEY, b INT); INSERT INTO v.t SELECT seq, seq FROM seq_1_to_5000"
        run(["mariadb", "--no-defaults", "-u", "root", "-S", server.unix_socket, "-e", fill])
        query = "SELECT SUM(b) FROM v.t WHERE a BETWEEN {} AND 3000"
        with OpenLoop(server.address, "mysql", query, client_prefix, numbers=3000) as load:
            yield load


@contextlib.contextmanager
def _haproxy(server_prefix, client_prefix):
    options = "compression algo gzip\n    compression type text/plain"
    with Nginx(client_prefix, locations="default_type text/plain;") as backend:
        (backend.directory / "text").write_bytes(_TEXT)
        with (
            HAProxy(backend.address, server_prefix, threads=1, options=options) as server,
            OpenLoop(server.address, "http", "/text", client_prefix, headers=_ACCEPT_GZIP) as load,
        ):
            yield load


SUBJECTS = {
    subject.name: subject
    for subject in (
        Subject("nginx", "event loop", "gzip of 64 KiB of text, sent in pieces", _nginx),
        Subject("redis", "single thread", "SINTERCARD of two sets of 3000 words", _redis),
        Subject("memcached", "event loops in 4 threads", "get of 100 keys of 50 bytes", _memcached),
        Subject("apache-prefork", "process a connection", "deflate of 64 KiB of text", _apache("prefork")),
        Subject("apache-event", "event loop and threads", "deflate of 64 KiB of text", _apache("event")),
        Subject(
            "gunicorn-sync", "pre-fork, 2 processes, a connection a request", "10 … 90 thousand additions in Python",
            _connected(lambda prefix: Gunicorn(prefix, "sync", module="work"), "http", "/{}", numbers=90, reconnect=True),
        ),
        Subject(
            "gunicorn-threads", "2 processes of 4 threads and a lock", "up to 90 thousand additions in Python",
            _connected(lambda prefix: Gunicorn(prefix, "gthread", module="work"), "http", "/{}", numbers=90),
        ),
        Subject(
            "node", "event loop, garbage collected", "up to 400 hashes of 4 KiB",
            _connected(Node, "http", "/{}", numbers=400),
        ),
        Subject(
            "java", "thread pool of 4 behind a poller, garbage collected", "up to 300 hashes of 4 KiB",
            _connected(Java, "http", "/{}", numbers=300),
        ),
        Subject(
            "go", "goroutines, garbage collected", "up to 300 hashes of 4 KiB",
            _connected(Go, "http", "/{}", numbers=300),
        ),
        Subject("haproxy", "proxy, event loop; nginx behind it", "gzip of 64 KiB of the backend's text", _haproxy),
        Subject(
            "knot", "UDP", "an A record, signed on the fly",
            _connected(lambda prefix: Knot(prefix, signing=True), "dns", "h{}.example", numbers=100),
        ),
        Subject("postgres", "process a connection", "sum over up to 5000 rows", _postgres),
        Subject("postgres-writes", "process a connection, locks, disk", "pgbench's TPC-B-like transaction: 7 requests", _postgres_writes, turns=7),
        Subject("mariadb", "thread a connection", "sum over up to 3000 rows", _mariadb),
    )
}  # fmt: skip
