"""What is done to tacho's port under soak, all of it within TLS but what is to fail there.

Clients have the address of who scrapes, unless they are to get no more than their share of what all have together.
"""

import collections
import contextlib
import random
import socket
import struct
import time

from support import attack
from support.exposition import OPENMETRICS
from support.waiting import wait_until

SECONDS = 3
OTHER = "127.0.0.8"  # than who scrapes
NO_TLS = [b"GET / HTTP/0.9\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x80\x2e\x01\x00\x02", b"\x16\x03\x01\xff\xff" + b"a" * 100]
MALFORMED = [
    b"GET / HTTP/0.9\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x80\x2e\x01\x00\x02", b"\x00" * 64, b"GET /%00 HTTP/1.1\r\n\r\n",
    b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length : +5\r\n\r\n",
    b"GET /" + b"a" * 500_000, b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 10_000, b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"a" * 1_000_000,
    b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 300,
]  # fmt: skip
UNAUTHORIZED, TOO_MANY = 401, 429
REFUSED = {400, 431, 505}  # by the parser of heads, before anybody asks for a password
PAGE = attack.WHOLE_GET[:-2] + attack.RIGHT.encode() + b"\r\n"
PATHS = ["/metrics", "/", "/targets", "/api/v1/targets"]


class WebTroubles:
    """`reached` is how often each came as far as it was to come: an attack that ends before that is none."""

    def __init__(self, tacho, order: random.Random):
        self.tacho, self._random = tacho, order
        self.reached: collections.Counter[str] = collections.Counter()

    def _connect(self, source: str = "127.0.0.1", **options) -> socket.socket:
        return attack.connect(self.tacho.port, tls=True, source=source, timeout=5, **options)

    def _raw(self) -> socket.socket:
        """A connection on which no handshake is made."""
        client = attack.connect(self.tacho.port, timeout=5)
        client.setblocking(False)
        return client

    def _crowd(self, what: str, clients: int, step, until=lambda: True) -> None:
        """So many clients for a while, and until something has come of it; how often that was is in `reached`."""
        with attack.Crowd(clients, step) as crowd:
            time.sleep(SECONDS)
            wait_until(lambda: crowd.steps and until(), 20, what)
        self.reached[what] += crowd.steps

    def _asks(self, wanted: set[int], **options):
        """A step: asks once, which counts if the answer has such a status."""

        def ask():
            status, _ = attack.scrape(self.tacho.port, tls=True, source=OTHER, **options)
            if status not in wanted:
                raise OSError(f"answered {status}")

        return ask

    def _lost(self, reason: str) -> float:
        return self.tacho.scrape().get("tacho_web_connections_lost_total", reason=reason)

    def hellos_stall(self):
        rate, sources = self._random.choice([35, 100, 400]), self._random.choice([1, 2000])
        with attack.Stalls(self.tacho.port, attack.client_hello(), rate, sources=sources) as stalls:
            time.sleep(SECONDS)
        self.reached["hellos"] += stalls.opened

    def silence_stalls(self):
        payload = self._random.choice([b"", b"\x16\x03\x01"])
        with attack.Stalls(self.tacho.port, payload, 300, source="127.0.0.9", sources=self._random.choice([1, 2000])) as stalls:
            time.sleep(SECONDS)
        self.reached["silence"] += stalls.opened

    def halves_stall(self):
        """Heads that end amid, and bodies that do not come; the first stay until they are given up."""
        kept: list[socket.socket] = []
        place = self._random.choice(["127.0.9.1", "127.0.9.{}"])
        before = self._lost("no_request")

        def stall():
            client = self._connect(place.format(random.randint(1, 250)))
            client.sendall(random.choice([attack.HALF_HEAD, attack.STALLED_BODY, b"G"]))
            kept.append(client)
            if len(kept) > 300:
                kept.pop(50).close()

        self._crowd("halves", 4, stall, lambda: self._lost("no_request") > before)

    def drips_come(self):
        """Heads of which a byte comes at a time, in a record of its own; nobody waits for the end of them."""
        head = b"GET /metrics HTTP/1.1\r\nHost: a\r\nA: " + b"a" * 1000
        pause = self._random.choice([0, 0.01])

        def drip():
            with self._connect(OTHER) as client:
                try:
                    for byte in head:
                        client.sendall(bytes([byte]))
                        time.sleep(pause)
                except OSError:
                    return
            raise OSError("it was read to its end")

        self._crowd("drips", 50, drip)

    def slow_readers_come(self):
        """Of pages, of which they take nothing, or a little now and then."""
        kept: list[socket.socket] = []

        def read():
            if len(kept) < 60:
                kept.append(self._connect(f"127.0.10.{1 + len(kept)}", receive_buffer=4096))
                kept[-1].sendall(PAGE)
                kept[-1].setblocking(False)
                return
            time.sleep(0.05)
            for client in kept[::2]:
                with contextlib.suppress(BlockingIOError, OSError):
                    client.recv(100)

        with attack.Crowd(1, read) as crowd:
            wait_until(lambda: crowd.steps >= 60, 20, "all have asked")
            wait_until(lambda: self.tacho.scrape().get("tacho_web_connections") >= 30, 10, "their answers wait for them")
            time.sleep(SECONDS)
        self.reached["slow readers"] += 60

    def keepers_come(self):
        """Who has its answer and does not leave."""
        kept: list[socket.socket] = []

        def keep():
            # Which one is the last, other threads change: OpenSSL bears one at a time.
            client = self._connect()
            kept.append(client)
            client.sendall(b"GET /-/healthy HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n" + attack.RIGHT.encode() + b"\r\n")
            if attack.status_of(client.recv(100)) != 200:
                raise OSError("no answer")

        self._crowd("keepers", 4, keep)

    def floods_come(self):
        path, clients = self._random.choice(PATHS), self._random.choice([4, 16, 64])
        self._crowd("floods", clients, self._asks({200}, path=path, headers=attack.RIGHT))

    def compressed_pages_come(self):
        headers = f"{attack.RIGHT}Accept-Encoding: gzip\r\n" + self._random.choice(["", f"Accept: {OPENMETRICS}\r\n"])

        def ask():
            if not attack.scrape(self.tacho.port, tls=True, source=OTHER, headers=headers)[1].startswith(b"\x1f\x8b"):
                raise OSError("no gzip")

        self._crowd("compressed pages", 10, ask)

    def guesses_come(self):
        self._crowd("guesses", 24, self._asks({UNAUTHORIZED}, headers=attack.WRONG))

    def reloads_come(self):
        self._crowd("reloads", 4, self._asks({200, TOO_MANY}, method="POST", path="/-/reload", headers=attack.RIGHT))

    def resets_come(self):
        for _ in range(2000):
            with contextlib.suppress(OSError), self._raw() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.reached["resets"] += 1

    def nonsense_comes(self):
        """Which ends as TLS."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            with contextlib.suppress(OSError), self._raw() as client:
                client.send(self._random.choice(NO_TLS))
                self.reached["nonsense"] += 1

    def malformed_requests_come(self):
        """Which the parser of heads reads, and all but the last refuses."""

        def say():
            with self._connect() as client:
                with contextlib.suppress(OSError):
                    client.sendall(random.choice(MALFORMED))
                status = attack.status_of(client.recv(100))
            if status not in REFUSED:
                raise OSError(f"answered {status}")

        self._crowd("malformed requests", 4, say)
