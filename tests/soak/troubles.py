"""What is done to a tacho under soak: each for a few seconds, and each leaves nothing behind."""

import contextlib
import os
import random
import signal
import socket
import struct
import subprocess
import threading
import time

from support import attack, certificate
from support.cgroup import Cgroup
from support.clients import exact
from support.servers import ExactServer
from support.waiting import wait_until

SECONDS = 4
MALFORMED = [
    b"GET / HTTP/0.9\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x80\x2e\x01\x00\x02", b"\x00" * 64, b"GET /%00 HTTP/1.1\r\n\r\n",
    b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n",
    b"GET /" + b"a" * 500_000, b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 10_000, b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"a" * 1_000_000,
    b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 300,
]  # fmt: skip


class Troubles:
    """`known` are those by name; each is called with nothing. `paused` is set while nobody can be answered."""

    def __init__(self, tacho, directory, parent: Cgroup, order: random.Random, paused):
        self.tacho, self._directory, self._parent, self._random = tacho, directory, parent, order
        self.paused = paused
        self._servers = 0
        self.known = {name: getattr(self, name) for name in dir(self) if name.endswith(("_stall", "_come", "_happen"))}

    def connect(self, **options) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self.tacho.port), timeout=5, **options)
        client.setblocking(False)
        return client

    def hellos_stall(self):
        rate, sources = self._random.choice([35, 100, 400]), self._random.choice([1, 2000])
        with attack.Stalls(self.tacho.port, attack.client_hello(), rate, sources=sources):
            time.sleep(SECONDS)

    def silence_and_halves_stall(self):
        payload = self._random.choice([b"", b"\x16\x03\x01", attack.HALF_HEAD, attack.STALLED_BODY])
        with attack.Stalls(self.tacho.port, payload, 300, source="127.0.0.9", sources=self._random.choice([1, 2000])):
            time.sleep(SECONDS)

    def floods_come(self):
        stop = threading.Event()

        def ask():
            while not stop.is_set():
                with contextlib.suppress(OSError):
                    attack.scrape(self.tacho.port, tls=True, source="127.0.0.8")

        clients = [threading.Thread(target=ask) for _ in range(4)]
        for client in clients:
            client.start()
        time.sleep(SECONDS)
        stop.set()
        for client in clients:
            client.join()

    def resets_come(self):
        for _ in range(2000):
            with contextlib.suppress(OSError), self.connect() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def malformed_requests_come(self):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            with contextlib.suppress(OSError), self.connect() as client:
                client.send(self._random.choice(MALFORMED))

    def cgroups_come(self):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            with contextlib.ExitStack() as stack:
                for number in range(40):
                    stack.enter_context(Cgroup(f"c{number}", self._parent))

    def servers_come(self):
        for _ in range(3):
            # One that comes back under its old name would go on counting.
            self._servers += 1
            with Cgroup(f"s{self._servers}", self._parent) as group, ExactServer(group.prefix) as server:
                wait_until(lambda: self.tacho.scrape().target_of(group.path), 10, f"{group.path} is watched")
                requests = self._random.randint(1, 500)
                assert exact(server.address, requests, connections=2).requests == requests
                wait_until(lambda: self._answered(group.path) == requests, 10, f"{requests} requests of {group.path}")

    def _answered(self, path: str) -> float:
        return self.tacho.scrape().sum("tacho_requests_total", cgroup=path)

    def processes_come(self):
        subprocess.run(["sh", "-c", "for i in $(seq 1000); do /bin/true; done"], check=True, timeout=60)

    def signals_come(self):
        for _ in range(500):
            self.tacho.process.signal(signal.SIGHUP)

    def broken_configurations_come(self):
        good = self.tacho.config_file.read_text()
        self.tacho.configure("targets: [{name: broken, cgroupp: /x}]\n")
        self.tacho.process.signal(signal.SIGHUP)
        wait_until(lambda: self._reloaded() == 0, 10, "the broken one is refused")
        self.tacho.configure(good)
        self.tacho.process.signal(signal.SIGHUP)
        wait_until(lambda: self._reloaded() == 1, 10, "the good one is taken")

    def _reloaded(self) -> float:
        return self.tacho.scrape().get("tacho_config_last_reload_successful")

    def certificates_come(self):
        """The key first: for a moment the two do not belong together."""
        new = self._directory / "new"
        new.mkdir(exist_ok=True)
        made = certificate.self_signed(new)
        for file in reversed(made):
            os.replace(file, self._directory / file.name)
            time.sleep(0.2)

    def stops_happen(self):
        self.paused.set()
        clients = [self.connect() for _ in range(100)]
        self.tacho.process.signal(signal.SIGSTOP)
        try:
            time.sleep(2)
        finally:
            self.tacho.process.signal(signal.SIGCONT)
            for client in clients:
                client.close()
            wait_until(lambda: self.tacho.http("/metrics")[0] == 200, 10, "it goes on")
            self.paused.clear()
