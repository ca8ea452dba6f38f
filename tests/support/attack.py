"""Clients that mean no good, and the reader beside them who must not notice."""

import collections
import contextlib
import multiprocessing
import os
import selectors
import socket
import ssl
import subprocess
import sys
import threading
import time

from support import paths

IP_BIND_ADDRESS_NO_PORT = 24
NICE = 5  # of attackers: elsewhere they would take no CPU from whom they attack
HASH = "$2b$10$KCdZs7yqvl6ig9rAUBrXaubFVzhsuilan81UybjyHriQ0PH0b0cRW"  # bcrypt of "secret"
RIGHT, WRONG = (f"Authorization: Basic {code}\r\n" for code in ("cmVhZGVyOnNlY3JldA==", "cmVhZGVyOndyb25n"))
LIMIT = 1.0  # for each scrape of somebody else
STALLED_BODY = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"
STALLED_GET = b"GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"
HALF_HEAD = b"GET /metrics HTTP/1.1\r\nHost:"
WHOLE_GET = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
WHOLE_ELSEWHERE = b"GET /targets HTTP/1.1\r\nHost: a\r\n\r\n"


def client_hello() -> bytes:
    """What a TLS client sends first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    outgoing = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
    return outgoing.read()


class Stalls:
    """Opens `rate` connections a second, sends the same on each and then nothing, and reads nothing. The last 1 000 stay open.

    They come from one address, or from one after the other of `sources`.
    """

    KEPT = 1000

    def __init__(self, port: int, payload: bytes, rate: float, source: str = "127.0.0.1", sources: int = 1):
        self._port, self._payload, self._rate = port, payload, rate
        self.sources = [f"127.{1 + n // 40000}.{n // 200 % 200}.{1 + n % 200}" for n in range(sources)] if sources > 1 else [source]
        self._stop = threading.Event()
        self.opened = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _open(self) -> socket.socket | None:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setsockopt(socket.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        client.bind((self.sources[self.opened % len(self.sources)], 0))
        client.setblocking(False)
        client.connect_ex(("127.0.0.1", self._port))
        return client

    def _run(self):
        kept: list[socket.socket] = []
        selector = selectors.DefaultSelector()
        begin = time.monotonic()
        while not self._stop.is_set():
            due = (time.monotonic() - begin) * self._rate
            while self.opened < due:
                client = self._open()
                self.opened += 1
                kept.append(client)
                selector.register(client, selectors.EVENT_WRITE)
            for key, _ in selector.select(timeout=min(0.02, 1 / self._rate)):
                selector.unregister(key.fileobj)
                with contextlib.suppress(OSError):
                    key.fileobj.send(self._payload)
            while len(kept) > self.KEPT:
                self._close(selector, kept.pop(0))
        for client in kept:
            self._close(selector, client)

    @staticmethod
    def _close(selector, client):
        with contextlib.suppress(KeyError):
            selector.unregister(client)
        client.close()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._stop.set()
        self._thread.join()


class Crowd:
    """So many clients at a time, each of which does one thing over and over: threads of a process of their own.

    Python lets one thread of a process run at a time: clients beside it would delay who measures, whatever tacho does.
    """

    def __init__(self, clients: int, step):
        fork = multiprocessing.get_context("fork")
        self._step, self._steps = step, fork.Array("Q", clients, lock=False)
        self._process = fork.Process(target=self._run, daemon=True)

    @property
    def steps(self) -> int:
        return sum(self._steps)

    def _run(self):
        os.nice(NICE)
        for number in range(1, len(self._steps)):
            threading.Thread(target=self._repeat, args=[number], daemon=True).start()
        self._repeat(0)

    def _repeat(self, number: int):
        while True:
            with contextlib.suppress(OSError):
                self._step()
                self._steps[number] += 1

    def __enter__(self):
        self._process.start()
        return self

    def __exit__(self, *error):
        self._process.kill()
        self._process.join()


class Flood:
    """So many clients of 127.0.0.1 that ask for the same over and over, and read it as fast as it comes: another process (support/flood.py)."""

    def __init__(self, port: int, request: bytes, clients: int):
        self._arguments = [str(port), str(clients), request]
        self.answers = 0

    def __enter__(self):
        self._process = subprocess.Popen(
            ["nice", f"-n{NICE}", sys.executable, "-B", "-m", "support.flood", *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=paths.REPOSITORY / "tests",
        )
        assert self._process.stdout.readline() == b"all have begun\n"
        return self

    def __exit__(self, *error):
        written, _ = self._process.communicate(b"end")
        self.answers = int(written)


class Drips(Crowd):
    """So many clients, of so many sources, which ask for a page one after the other, and each take a little of it now and then.

    They come from 127.0.0.1, or from sources that were served before.
    """

    def __init__(self, port: int, sources: int, clients: int, rate: float):
        super().__init__(1, self._round)
        self._port, self._pause = port, 1 / rate
        self._sources = [f"127.2.{n // 200}.{1 + n % 200}" for n in range(sources)] if sources > 1 else ["127.0.0.1"]
        for source in self._sources:
            assert scrape(port, source=source, path="/-/healthy")[0] == 200
        self._open: list[socket.socket] = []
        self._most, self._asked, self._next = clients, 0, 0.0

    def _ask(self):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.bind((self._sources[self._asked % len(self._sources)], 0))
        client.connect(("127.0.0.1", self._port))
        client.sendall(WHOLE_GET)
        client.setblocking(False)
        self._open.append(client)
        self._asked += 1

    def _round(self):
        now = time.monotonic()
        if now >= self._next and len(self._open) < self._most:
            self._next = now + self._pause
            self._ask()
        for client in list(self._open):
            try:
                if client.recv(3000):
                    continue
            except BlockingIOError:
                continue
            except OSError:
                pass  # it was cut off
            self._open.remove(client)
            client.close()
        time.sleep(self._pause)


class Callers(Crowd):
    """So many clients of 127.0.0.1, each of which connects, says something as long as it is read, leaves, and begins again."""

    def __init__(self, port: int, payload: bytes, clients: int):
        super().__init__(clients, self._call)
        self._address, self._payload = ("127.0.0.1", port), payload

    def _call(self):
        with socket.create_connection(self._address, timeout=1) as client:
            client.sendall(self._payload)


class Spellers(Crowd):
    """So many clients of 127.0.0.1 that begin a request whose head is as long as may be, and go on with it byte by byte."""

    BEGIN = WHOLE_GET[:-2] + b"A: " + b"a" * 15_000

    def __init__(self, port: int, clients: int):
        super().__init__(1, self._round)
        self._port, self._clients = port, clients
        self._open: list[socket.socket] = []

    def _round(self):
        while len(self._open) < self._clients:
            client = socket.create_connection(("127.0.0.1", self._port))
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.sendall(self.BEGIN)
            client.setblocking(False)
            self._open.append(client)
        for client in list(self._open):
            try:
                client.send(b"a")
            except BlockingIOError:
                pass
            except OSError:  # it was cut off
                self._open.remove(client)
                client.close()


class Holders(Crowd):
    """Clients of 127.0.0.1 that ask, have their answer and stay, `most` of them at a time; each that is more takes the oldest's place.

    With `enough` set none comes any more, and none leaves.
    """

    def __init__(self, port: int, request: bytes, most: int):
        super().__init__(4, self._ask)
        self._address, self._request, self._most = ("127.0.0.1", port), request, most
        self._held: collections.deque[socket.socket] = collections.deque()
        self.enough = multiprocessing.get_context("fork").Event()

    def _ask(self):
        if self.enough.is_set():
            time.sleep(1)
            raise InterruptedError  # which is no step
        client = socket.create_connection(self._address, timeout=5)
        client.sendall(self._request)
        if not client.recv(65536).startswith(b"HTTP/1.1 200"):
            raise ConnectionError("no answer")
        self._held.append(client)
        if len(self._held) > self._most:
            self._held.popleft().close()


def connect(
    port: int, *, tls: bool = False, source: str = "127.0.0.1", timeout: float = 10, receive_buffer: int = 0
) -> socket.socket:
    """A connection from that address; under TLS its handshake is over."""
    plain = socket.socket()
    try:
        plain.settimeout(timeout)
        if receive_buffer:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        plain.bind((source, 0))
        plain.connect(("127.0.0.1", port))
        if not tls:
            return plain
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context.wrap_socket(plain)
    except OSError:
        plain.close()
        raise


def status_of(answer: bytes) -> int:
    """0 if there was none."""
    return int(answer.split()[1]) if answer.startswith(b"HTTP/") else 0


def scrape(
    port: int, *, method: str = "GET", path: str = "/metrics", headers: str = "", **options
) -> tuple[int, bytes]:
    """One scrape on a connection of its own, with the options of `connect`: status and body."""
    with connect(port, **options) as connection:
        connection.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())
        answer = b""
        while part := connection.recv(1 << 20):
            answer += part
        head, _, body = answer.partition(b"\r\n\r\n")
        return status_of(head), body


def times_of_scrapes(port: int, seconds: float, word: bytes = b"tacho_build_info", **options) -> list[float]:
    """Four scrapes a second: how long each took. Every one must be answered, by a page with that word."""
    times = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.monotonic()
        status, body = scrape(port, **options)
        times.append(time.monotonic() - begin)
        assert status == 200 and word in body, f"a scrape was answered {status}"
        time.sleep(max(0.0, 0.25 - times[-1]))
    return times


def limit(port: int, **options) -> float:
    """A second, and what a scrape takes on this machine anyway, which may be busy with other things.

    Where it has more to do than it can, connections wait to be accepted, and the kernel has a client knock again after a
    second (TCP's first retransmission).
    """
    load = os.getloadavg()[0]
    overloaded = load > 4 * os.cpu_count()
    if overloaded:
        print(f"load {load:.0f} on {os.cpu_count()} CPUs: a retransmission of a second is allowed for")
    return LIMIT + max(times_of_scrapes(port, 1, **options)) + (1 if overloaded else 0)
