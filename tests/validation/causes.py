"""Does `tacho why` name what is wrong? Servers under a moderate load, to which something is done, or nothing.

The server runs on CPU 0 in a cgroup of its own, everything else on CPU 1. Each trial begins with a fresh tacho, which sees the
server as it is for a while before the fault begins.
"""

import contextlib
import csv
import dataclasses
import json
import pathlib
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable

from support import paths
from support.cgroup import Cgroup
from support.clients.open_loop import OpenLoop
from support.clients.pgbench import PgbenchRate, initialize
from support.process import Process, run
from support.servers import Gunicorn, HAProxy, MariaDB, Nginx, Postgres, Redis, Script, Waitress
from support.servers.postgres import postgres_programs
from support.tacho import Tacho
from support.waiting import wait_until
from validation.rig import CLIENT, SERVER, TARGET, configuration

NONE = "nothing"
_WINDOW = 3.0
# The loops that faults are made of end by themselves, whatever becomes of who started them.
_LONGEST = 60


@dataclasses.dataclass(frozen=True)
class Fault:
    """What is done to a server, as a context manager, and the cause that has to be named."""

    inject: Callable
    cause: str


@dataclasses.dataclass(frozen=True)
class Scene:
    """A server under load: what can be done to it."""

    load: object
    rate: float
    faults: dict[str, Fault]
    window: float = _WINDOW  # in which at least a hundred requests come: else the last minute is looked at


@contextlib.contextmanager
def _thief():
    """Three programs that need the server's CPU as much as it does."""
    with contextlib.ExitStack() as stack:
        group = stack.enter_context(Cgroup("thief"))
        for _ in range(3):
            stack.enter_context(Process(["timeout", _LONGEST, "sh", "-c", "while :; do :; done"], prefix=[*group.prefix, *SERVER]))
        yield


@contextlib.contextmanager
def _disk_writer():
    """Two programs that write new files and wait for the disk: a file system's journal makes others wait for these, too."""
    with tempfile.TemporaryDirectory(prefix="tacho-writer-", dir=_journal()) as directory, contextlib.ExitStack() as stack:
        for number in range(2):
            file = pathlib.Path(directory) / str(number)
            write = f"while :; do rm -f {file}; dd if=/dev/zero of={file} bs=1M count=64 conv=fsync 2>/dev/null; done"
            stack.enter_context(Process(["timeout", _LONGEST, "sh", "-c", write], prefix=CLIENT))
        yield


def _journal() -> str:
    """A directory on a disk: the temporary one may be memory."""
    return "/var/tmp"


def _get(address: str, path: str) -> None:
    with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
        answer.read()


def _asked(address: str, begin: str, end: str):
    """A fault that a server makes itself when it is asked to."""

    @contextlib.contextmanager
    def injected():
        _get(address, begin)
        try:
            yield
        finally:
            _get(address, end)

    return injected


def _statements(command: list, end: list, env: dict | None = None):
    """A database's client whose one request goes on for long. `end`: has the server end it, which else goes on without the client."""

    @contextlib.contextmanager
    def injected():
        with Process(["timeout", _LONGEST, *command], env=env, prefix=CLIENT):
            try:
                yield
            finally:
                run([*CLIENT, *end], env=env)

    return injected


_THIEF = Fault(_thief, "cpu shortage or runqueue")
_DISK = Fault(_disk_writer, "disk")


def _slow_dependency(address: str) -> Fault:
    return Fault(_asked(address, "/delay/20", "/delay/0"), f"dependency {address}")


def _application(server):
    @contextlib.contextmanager
    def opened(prefix):
        with (
            Script("delayed.py", CLIENT) as backend,
            server(prefix, {"DEPENDENCY": backend.address, "JOURNAL": _journal()}) as running,
            OpenLoop(running.address, "http", "/cldn", CLIENT, connections=4) as load,
        ):
            yield Scene(load, 60, {
                "CPU thief": _THIEF,
                "lock holder": Fault(_asked(running.address, "/hold", "/free"), "lock"),
                "disk writer": _DISK,
                "slow dependency": _slow_dependency(backend.address),
            })  # fmt: skip

    return opened


def _proxy(server):
    @contextlib.contextmanager
    def opened(prefix):
        with (
            Script("delayed.py", CLIENT) as backend,
            server(prefix, backend.address) as running,
            OpenLoop(running.address, "http", "/", CLIENT, connections=8) as load,
        ):
            yield Scene(load, 400, {"CPU thief": _THIEF, "slow dependency": _slow_dependency(backend.address)})

    return opened


@contextlib.contextmanager
def _redis(prefix):
    with Redis(prefix, durable=_journal()) as server, OpenLoop(server.address, "redis", "SET a b", CLIENT, connections=4) as load:
        yield Scene(load, 200, {"CPU thief": _THIEF, "disk writer": _DISK})


@contextlib.contextmanager
def _postgres(prefix):
    with Postgres(prefix, durable=True) as server:
        initialize(server, scale=4)
        hold = "BEGIN; LOCK TABLE pgbench_branches IN EXCLUSIVE MODE; SELECT pg_sleep(.04); COMMIT; SELECT pg_sleep(.01); "
        psql = [postgres_programs() / "psql", "-h", server.directory, "-p", server.port, "-q", "-o", "/dev/null", "-c"]
        end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'BEGIN; LOCK%'"
        with PgbenchRate(server, connections=4, prefix=CLIENT) as load:
            yield Scene(load, 40, {
                "CPU thief": _THIEF,
                # It sleeps on a latch, which is an epoll.
                "lock holder": Fault(_statements([*psql, 1000 * hold], [*psql, end], server.environment), "event"),
                "disk writer": _DISK,
            })  # fmt: skip


@contextlib.contextmanager
def _mariadb(prefix):
    with MariaDB(prefix, durable=True) as server:
        client = ["mariadb", "--no-defaults", "-S", server.unix_socket]
        admin = [*client, "-u", "root", "-e"]
        tables = "CREATE TABLE v.parent (id INT PRIMARY KEY, n INT); INSERT INTO v.parent VALUES (1, 1);"
        tables += "CREATE TABLE v.t (id INT AUTO_INCREMENT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES v.parent (id))"
        run([*admin, f"CREATE DATABASE v; {tables}; CREATE USER holder@localhost; GRANT ALL ON *.* TO holder@localhost"])
        hold = "START TRANSACTION; UPDATE v.parent SET n = n + 1; DO SLEEP(.04); COMMIT; DO SLEEP(.01);"
        hold = f"BEGIN NOT ATOMIC FOR i IN 1..1000 DO {hold} END FOR; END"
        with OpenLoop(server.address, "mysql", "INSERT INTO v.t (parent) VALUES (1)", CLIENT, connections=4) as load:
            # Seldom two at a time: the second would wait for the first one's thread, which writes for both.
            yield Scene(load, 25, window=5, faults={
                "CPU thief": _THIEF,
                "lock holder": Fault(_statements([*client, "-u", "holder", "--delimiter=//", "-e", hold], [*admin, "KILL USER holder@localhost"]), "lock"),
                "disk writer": _DISK,
            })  # fmt: skip


SCENES = {
    "gunicorn": _application(lambda prefix, env: Gunicorn(prefix, "gthread", workers=1, module="stages", env=env)),
    "waitress": _application(lambda prefix, env: Waitress(prefix, module="stages", env=env)),
    "nginx": _proxy(lambda prefix, backend: Nginx(prefix, locations=f"location = / {{ proxy_pass http://{backend}; }}")),
    "haproxy": _proxy(lambda prefix, backend: HAProxy(backend, prefix, threads=1)),
    "redis": _redis,
    "postgres": _postgres,
    "mariadb": _mariadb,
}


@dataclasses.dataclass(frozen=True)
class Trial:
    server: str
    fault: str
    expected: str  # "A or B"; empty: nothing may be named
    named: str
    sentence: str

    @property
    def right(self) -> bool:
        return self.named in self.expected.split(" or ")


def why(tacho: Tacho) -> dict:
    """What `tacho why --json` says of the one target."""
    command = [paths.require(paths.TACHO), "why", "--json", "--url", f"http://{tacho.address}"]
    (told,) = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout)["targets"]
    return told


def _see(tacho: Tacho, seconds: float) -> None:
    """Waits until tacho has sampled the server for so many seconds: what it says rests on a history."""

    def tick() -> int:
        return json.loads(tacho.http("/api/v1/targets?limit=1")[2])["tick"]

    end = tick() + seconds
    wait_until(lambda: tick() >= end, 3 * seconds + 10, "tacho samples")


def _trial(server: str, fault: str, scene: Scene, group: Cgroup) -> Trial:
    injected = scene.faults.get(fault)
    with Tacho(configuration(group, scene.window, anatomy=True), prefix=CLIENT) as tacho:
        tacho.wait_for_target(TARGET)
        _see(tacho, 3 * scene.window)
        with injected.inject() if injected else contextlib.nullcontext():
            _see(tacho, 2 * scene.window)
            told = why(tacho)
    cause = told["cause"]
    return Trial(server, fault, injected.cause if injected else "", cause["name"] if cause else "", told["sentence"])


def trials(server: str, count: int, faults: list[str] | None = None):
    """`count` trials of each fault that the server knows, and of nothing, in turns."""
    with Cgroup(server) as group, SCENES[server]([*group.prefix, *SERVER]) as scene:
        kinds = [kind for kind in (NONE, *scene.faults) if not faults or kind in faults]
        seconds = count * len(kinds) * (7 * scene.window + 6) + 10
        scene.load.start(scene.rate, seconds, 1)
        for _ in range(count):
            for kind in kinds:
                yield _trial(server, kind, scene, group)


COLUMNS = [field.name for field in dataclasses.fields(Trial)]


def read(file: pathlib.Path) -> list[Trial]:
    if not file.exists():
        return []
    with open(file, newline="") as source:
        return [Trial(**row) for row in csv.DictReader(source)]


def write(file: pathlib.Path, names: list[str], count: int, say) -> None:
    """Trials of the servers named; those of the file that are not stay in it."""
    kept = [trial for trial in read(file) if trial.server not in names]
    file.parent.mkdir(parents=True, exist_ok=True)
    for name in names:
        for trial in trials(name, count):
            say(f"{'right' if trial.right else 'WRONG'}  {name}, {trial.fault}: {trial.named or NONE}. {trial.sentence}")
            kept.append(trial)
            with open(file, "w", newline="") as out:
                csv.writer(out, lineterminator="\n").writerows([COLUMNS, *map(dataclasses.astuple, kept)])
