"""The servers of the validation: how each is started, what is asked of it, and why that.

A request has to make the server the bottleneck, not the client: on each there is work of 50 µs … 5 ms. Where the work is a
number in the request it is drawn evenly from a range, so that service times vary.
"""

import contextlib
import dataclasses
import socket
from collections.abc import Callable

from support.clients.open_loop import FaultProxy, OpenLoop
from support.clients.pgbench import PgbenchRate, initialize
from support.process import run
from support.servers import (
    Apache, Go, Gunicorn, HAProxy, Java, Knot, MariaDB, Memcached, Nginx, Node, Postgres, Redis,
    Waitress,
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
class Place:
    """Where a subject runs: words before the commands of server and client, and what is between them."""

    server: list[str]
    client: list[str]
    network: dict | None = None  # of a FaultProxy; None: nothing. Datagrams lose 1 % instead, in each direction
    connections: int = 32

    @contextlib.contextmanager
    def load(self, address: str, protocol: str, request: str, **options):
        with contextlib.ExitStack() as stack:
            if self.network is not None and protocol == "dns":
                options |= {"loss": 0.01, "timeout": 0.5}
            elif self.network is not None:
                address = stack.enter_context(FaultProxy(address, self.client, **self.network)).address
            yield stack.enter_context(
                OpenLoop(address, protocol, request, self.client, connections=self.connections, **options)
            )


@dataclasses.dataclass(frozen=True)
class Subject:
    """`open` yields a load on a fresh server, both where the place it is given says.

    A load has `start(rate, seconds, seed)` and `result(timeout)`, and each burst is `turns` requests a completed one, plus
    `extra_turns` of the load. `limit_cores`: what the server may use, here always the one CPU it is pinned to. `faults`: may
    a bad network be put before it? `blind`: why the kernel's signals cannot show its saturation, if so.
    """

    name: str
    model: str
    request: str
    open: Callable
    turns: int = 1
    limit_cores: float = 1.0
    most_connections: int = 200
    faults: bool = True
    blind: str = ""


def _connected(server, protocol: str, request: str, **options):
    @contextlib.contextmanager
    def opened(place):
        with server(place.server) as running, place.load(running.address, protocol, request, **options) as load:
            yield load

    return opened


@contextlib.contextmanager
def _nginx(place):
    with Nginx(place.server, locations="gzip on; gzip_types *; gzip_comp_level 1;") as server:
        (server.directory / "text").write_bytes(_TEXT)
        with place.load(server.address, "http", "/text", headers=_ACCEPT_GZIP) as load:
            yield load


def _apache(model: str):
    @contextlib.contextmanager
    def opened(place):
        with Apache(place.server, model, _DEFLATE) as server:
            (server.directory / "www" / "text").write_bytes(_TEXT)
            with place.load(server.address, "http", "/text", headers=_ACCEPT_GZIP) as load:
                yield load

    return opened


@contextlib.contextmanager
def _redis(place):
    with Redis(place.server) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            for key, step in (("a", 2), ("b", 3)):
                members = " ".join(f"m{number * step}" for number in range(3000))
                connection.sendall(f"SADD {key} {members}\r\n".encode())
                if not connection.recv(64).startswith(b":"):
                    raise RuntimeError("redis took no set")
        with place.load(server.address, "redis", "SINTERCARD 2 a b") as load:
            yield load


@contextlib.contextmanager
def _memcached(place):
    with Memcached(place.server) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            for number in range(100):
                connection.sendall(f"set key{number} 0 0 50\r\n{'v' * 50}\r\n".encode())
                if not connection.recv(64).startswith(b"STORED"):
                    raise RuntimeError("memcached stored nothing")
        keys = " ".join(f"key{number}" for number in range(100))
        with place.load(server.address, "memcached", f"get {keys}") as load:
            yield load


@contextlib.contextmanager
def _postgres(place):
    query = "SELECT sum(abalance) FROM pgbench_accounts WHERE aid BETWEEN {} AND 5000"
    with Postgres(place.server) as server:
        initialize(server)
        with place.load(server.address, "postgres", query, numbers=5000) as load:
            yield load


@contextlib.contextmanager
def _postgres_writes(place):
    with Postgres(place.server, durable=True) as server:
        initialize(server, scale=4)
        yield PgbenchRate(server, connections=place.connections, prefix=place.client)


@contextlib.contextmanager
def _mariadb(place):
    with MariaDB(place.server) as server:
        fill = (
            "CREATE DATABASE v; USE v; CREATE TABLE t (a INT PRIMARY KEY, b INT);"
            "INSERT INTO t SELECT seq, seq FROM seq_1_to_5000"
        )
        run(["mariadb", "--no-defaults", "-u", "root", "-S", server.unix_socket, "-e", fill])
        query = "SELECT SUM(b) FROM v.t WHERE a BETWEEN {} AND 3000"
        with place.load(server.address, "mysql", query, numbers=3000) as load:
            yield load


@contextlib.contextmanager
def _haproxy(place):
    options = "compression algo gzip\n    compression type text/plain"
    with Nginx(place.client, locations="default_type text/plain;") as backend:
        (backend.directory / "text").write_bytes(_TEXT)
        with (
            HAProxy(backend.address, place.server, threads=1, options=options) as server,
            place.load(server.address, "http", "/text", headers=_ACCEPT_GZIP) as load,
        ):
            yield load


SUBJECTS = {
    subject.name: subject
    for subject in (
        Subject("nginx", "event loop", "gzip of 64 KiB of text", _nginx),
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
            "gunicorn-waiting", "2 processes of 4 threads, which wait for something", "up to 40 ms asleep",
            _connected(lambda prefix: Gunicorn(prefix, "gthread", module="waiting"), "http", "/{}", numbers=40),
        ),
        Subject(
            "waitress-waiting", "4 threads behind one that reads all requests at once", "up to 40 ms asleep",
            _connected(lambda prefix: Waitress(prefix, module="waiting"), "http", "/{}", numbers=40),
            blind="it reads every request at once and queues in its own memory, and its threads need no CPU",
        ),
        Subject(
            "waitress", "4 threads behind one that reads all requests at once", "up to 90 thousand additions in Python",
            _connected(lambda prefix: Waitress(prefix, module="work"), "http", "/{}", numbers=90),
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
            "java-nagle", "the same; a reply's second segment waits for a delayed acknowledgement", "the same",
            _connected(lambda prefix: Java(prefix, nodelay=False), "http", "/{}", numbers=300),
            blind="nothing is busy: connections wait 40 ms for an acknowledgement, and there are 32 of them",
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
        Subject("postgres", "process a connection", "sum over up to 5000 rows", _postgres, most_connections=90),
        Subject("postgres-writes", "process a connection, locks, disk", "pgbench's TPC-B-like transaction: 7 requests", _postgres_writes,
            turns=7, faults=False),
        Subject("mariadb", "thread a connection", "sum over up to 3000 rows", _mariadb),
    )
}  # fmt: skip
