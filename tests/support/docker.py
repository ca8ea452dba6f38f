"""tacho and servers as containers of Docker's engine, started as README says."""

import pathlib
import shlex
import time

from support.clients import Counted, exact
from support.containers import Container
from support.engine import Engine
from support.net import exchange, listens_everywhere
from support.readme import commands
from support.tacho import Tacho
from support.waiting import wait_until

SECTION = "In a container"


def has_cap_bpf(engine: Engine) -> bool:
    """Docker knows CAP_BPF and CAP_PERFMON from 23.0 on."""
    return int(engine.version.partition(".")[0]) >= 23


def run_line(engine: Engine) -> str:
    """README's command that starts tacho in a container on this engine."""
    wanted = "--cap-add BPF" if has_cap_bpf(engine) else "--cap-add SYS_ADMIN"
    found = [line for line in commands(SECTION) if line.startswith("docker run ") and wanted in line]
    if len(found) != 1:
        raise ValueError(f"README has {len(found)} commands `docker run … {wanted} …`")
    return found[0]


class Server(Container):
    """The exact server in a container, on a bridge of the engine's."""

    def __init__(self, engine: Engine, name: str, *options):
        super().__init__(engine, "exact_server", name, "--listen=0.0.0.0:8080", options=options)
        about = engine.inspect(self.id)
        self._pid, networks = about["State"]["Pid"], about["NetworkSettings"]["Networks"]
        self.address = next(iter(networks.values()))["IPAddress"] + ":8080"
        wait_until(self._listens, 30, f"{name} listens")

    def _listens(self) -> bool:
        return listens_everywhere(pathlib.Path(f"/proc/{self._pid}/net/tcp").read_text(), 8080)

    def serve(self, requests: int) -> Counted:
        """Has it answer so many; what the client counted."""
        return exact(self.address, requests)


class DockerTacho(Tacho):
    """What README's `docker run` starts, in the background; `words` go before the image, `arguments` behind it."""

    def __init__(self, engine: Engine, *words: str, arguments=(), name: str = "tacho", line: str | None = None):
        command = shlex.split(line or run_line(engine), comments=True)
        if command[:2] != ["docker", "run"] or command[-1] != "tacho":
            raise ValueError(f"not a `docker run … tacho`: {command}")
        self.engine, self.name, self.address = engine, name, "127.0.0.1:9435"
        engine.cli(*command[1:2], "--detach", "--name", name, *words, *command[2:], *arguments)
        try:
            wait_until(self._ready, 60, f"{name} is ready", interval=0.05)
        except TimeoutError:
            said = self.log
            self.__exit__()  # or the next one finds its name and its port taken
            raise RuntimeError(f"{name} does not become ready; it said:\n{said}") from None

    def _ready(self) -> bool:
        return exchange(self.address, "/-/ready", timeout=2)[0] == 200

    @property
    def pid(self) -> int:
        return self.engine.inspect(self.name)["State"]["Pid"]

    @property
    def log(self) -> str:
        return self.engine.cli("logs", self.name)

    def stop(self) -> tuple[int, float]:
        """Asks it to end: its exit status and how many seconds that took."""
        began = time.monotonic()
        self.engine.cli("stop", "--time", "10", self.name)
        took = time.monotonic() - began
        return self.engine.inspect(self.name)["State"]["ExitCode"], took

    def __exit__(self, *_):
        self.engine.cli("rm", "--force", self.name)
