"""What is done to a tacho under soak: each for a few seconds, and each leaves nothing behind."""

import contextlib
import os
import random
import re
import signal
import subprocess
import time

from support import certificate, crowds
from support.cgroup import Cgroup
from support.clients import exact
from support.process import Process
from support.servers import ExactServer
from support.waiting import wait_until

from web_troubles import SECONDS, WebTroubles

KINDS = {"forks": 1_000, "threads": 2_000}  # of what comes and goes by so many


class Troubles(WebTroubles):
    """`known` are those by name; each is called with nothing. `paused` is told while nobody can be answered."""

    def __init__(self, tacho, directory, parent: Cgroup, order: random.Random, paused):
        super().__init__(tacho, order)
        self._directory, self._parent, self.paused = directory, parent, paused
        self._servers = 0
        self.known = {name: getattr(self, name) for name in dir(self) if re.search(r"_(stalls?|comes?|happen)$", name)}

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

    def crowds_come(self):
        """Children and threads that end at once, and listeners, in a cgroup that is a target."""
        with Cgroup("c40", self._parent) as group:
            for kind, rate in KINDS.items():
                with self._crowd_of(group, kind, rate, rate) as crowd:
                    self._disperse(crowd)
            with self._crowd_of(group, "listeners", 1_000) as listeners:
                listeners.wait_for_line("listening", timeout=60)
                self._disperse(listeners)
        self.reached["crowds"] += 1

    def _crowd_of(self, group: Cgroup, *arguments) -> Process:
        return Process(["/usr/bin/python3", "-B", crowds.__file__, *arguments], prefix=group.prefix, stdin=subprocess.PIPE)

    def _disperse(self, crowd: Process) -> None:
        crowd.close_stdin()
        crowd.wait_for_line("in .* s", timeout=60)

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
        self.reached["broken configurations"] += 1

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
        """Of either process, or of both: who asks meanwhile is answered afterwards."""
        web = self.tacho.web_pid
        pids = self._random.choice([[self.tacho.pid], [web], [self.tacho.pid, web]])
        self.paused.begin()
        with contextlib.ExitStack() as clients:
            with contextlib.ExitStack() as stack:
                for pid in pids:
                    os.kill(pid, signal.SIGSTOP)
                    stack.callback(os.kill, pid, signal.SIGCONT)
                stack.callback(self.paused.end)
                for _ in range(100):
                    clients.enter_context(self._raw())
                time.sleep(2)
        self.reached["stops"] += 1
        wait_until(lambda: self.tacho.http("/metrics")[0] == 200, 10, "it goes on")
