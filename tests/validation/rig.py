"""One server, one load, one tacho, each in its place; and what is looked at while a level runs."""

import contextlib
import dataclasses
import os
import pathlib
import time

from support.cgroup import Cgroup
from support.exposition import Samples
from support.tacho import Tacho, target
from support.waiting import wait_until
from validation.subjects import Place

TARGET = "subject"
SERVER_CPU, CLIENT_CPU = 0, 1
# Ahead of what else the machine does in the same session. Sessions themselves (sched(7), autogroup) stay alike: one that is
# put ahead keeps the kernel's own threads from running, and whoever waits for RCU, as the end of a BPF program does, for minutes.
_AHEAD = ["nice", "-n", "-15"]
SERVER = ["taskset", "-c", str(SERVER_CPU), *_AHEAD]
CLIENT = ["taskset", "-c", str(CLIENT_CPU), *_AHEAD]


def stay_beside_the_client() -> None:
    """This process, and what it starts without a prefix, leaves the server's CPU alone."""
    os.sched_setaffinity(0, {CLIENT_CPU})


def configuration(group: Cgroup, window: float, anatomy: bool = False) -> dict:
    return {
        "window": f"{round(1000 * window)}ms",
        "targets": [target(TARGET, group.path)],
        "histograms": {"buckets_per_octave": 4},
        "probes": {"anatomy": {"enabled": anatomy}},
    }


@dataclasses.dataclass(frozen=True)
class Look:
    """What was to be seen at one moment; the exposition is kept as text, reading it would cost the client CPU time."""

    moment: float
    text: str
    truth: dict

    def series(self) -> dict[str, tuple[str, float]]:
        """name{labels} → (type, value), of the target, without the labels that all have."""
        found = {}
        for family in Samples.parse(self.text).families:
            for sample in family.samples:
                if sample.labels.get("target") == TARGET and not sample.name.endswith("_info"):
                    labels = ",".join(f'{key}="{value}"' for key, value in sorted(sample.labels.items()) if key != "target")
                    found[f"{sample.name}{{{labels}}}" if labels else sample.name] = (family.type, sample.value)
        return found


class Rig:
    """A server of `subject` under its load, in a cgroup of its own; `tacho()` to watch it."""

    def __init__(self, subject, network: dict | None = None):
        self.subject, self._network = subject, network
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as stack:
            self.group = stack.enter_context(Cgroup(self.subject.name))
            # A request that is long under way needs a connection for as long.
            connections = self.subject.most_connections if self._network else 32
            place = Place([*self.group.prefix, *SERVER], CLIENT, self._network, connections)
            self.load = stack.enter_context(self.subject.open(place))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error):
        self._stack.__exit__(*error)

    def tacho(self, window: float = 2, anatomy: bool = False) -> Tacho:
        tacho = Tacho(configuration(self.group, window, anatomy), prefix=CLIENT)
        tacho.wait_for_target(TARGET)
        return tacho

    def truth(self) -> dict:
        """What the kernel's own accounts say, which no estimator may use: CPU and run-queue time of the server, seconds."""
        cpu = next(
            int(line.split()[1]) * 1e-6
            for line in (self.group.directory / "cpu.stat").read_text().splitlines()
            if line.startswith("usage_usec")
        )
        waited = 0
        for pid in self.group.pids():
            for file in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    waited += int(file.read_text().split()[1])
        return {
            "cpu_seconds": cpu, "run_queue_seconds": waited * 1e-9, "busy_seconds": _busy_seconds(SERVER_CPU),
            "stolen_seconds": _stolen_seconds(SERVER_CPU) + _stolen_seconds(CLIENT_CPU),
        }  # fmt: skip

    def look(self, tacho: Tacho) -> Look:
        before = time.monotonic()
        text = tacho.text()
        return Look((before + time.monotonic()) / 2, text, self.truth())

    def settled(self, tacho: Tacho) -> Look:
        """A look after which nothing moves: a reply reaches the client before the call that sent it has returned."""
        tacho.settled(TARGET)
        return self.look(tacho)


def _busy_seconds(cpu: int) -> float:
    """Of everything that ran there."""
    user, nice, system, _, _, interrupt, soft, *_ = _cpu_seconds(cpu)
    return user + nice + system + interrupt + soft


def _stolen_seconds(cpu: int) -> float:
    """In which the hypervisor let something else run."""
    return _cpu_seconds(cpu)[7]


def _cpu_seconds(cpu: int) -> list[float]:
    """Columns of /proc/stat (proc_stat(5))."""
    for line in pathlib.Path("/proc/stat").read_text().splitlines():
        name, *ticks = line.split()
        if name == f"cpu{cpu}":
            return [int(tick) / os.sysconf("SC_CLK_TCK") for tick in ticks]
    raise ValueError(f"no CPU {cpu}")


def capacity(rig: Rig, seconds: float, rounds: int = 3) -> float:
    """Requests a second with a request on every connection at all times; the first round only warms up."""
    rates = []
    for number in range(rounds + 1):
        burst = rig.load.run(0, seconds, seed=number)
        rates.append(burst.completed_by(burst.started + seconds) / seconds)
    return sorted(rates[1:])[rounds // 2]


def sleep_until(moment: float) -> None:
    wait_until(lambda: time.monotonic() >= moment, max(1.0, moment - time.monotonic() + 1), "the moment", interval=max(0.001, moment - time.monotonic()))


def two_cpus() -> bool:
    """May this process use the server's and the client's?"""
    return {SERVER_CPU, CLIENT_CPU} <= os.sched_getaffinity(0)
