"""Who scrapes once a second over TLS: a process of its own, so that the troubles' own work does not hold it up."""

import contextlib
import dataclasses
import multiprocessing
import os
import pathlib
import queue
import re
import time

from support import attack
from support.exposition import Samples

_spawn = multiprocessing.get_context("spawn")
TIMEOUT = 30
HEADERS = attack.RIGHT + "Accept: text/plain;version=0.0.4\r\n"


def waits_for_cpu(*processes: int | str) -> dict[str, float]:
    """Seconds that each of their threads, and of what they started, has waited for a CPU so far
    (Documentation/scheduler/sched-stats.rst)."""
    waited = {}
    found = list(processes)
    for process in found:
        for file in pathlib.Path(f"/proc/{process}/task").glob("*/children"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found += file.read_text().split()
        for file in pathlib.Path(f"/proc/{process}/task").glob("*/schedstat"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
                waited[str(file)] = int(file.read_text().split()[1]) / 1e9
    return waited


def stolen() -> dict[str, float]:
    """Seconds in which the hypervisor let others run on each CPU, so far (proc(5), /proc/stat)."""
    cpus = [line.split() for line in pathlib.Path("/proc/stat").read_text().splitlines() if re.match(r"cpu\d", line)]
    return {fields[0]: int(fields[8]) / os.sysconf("SC_CLK_TCK") for fields in cpus}


@dataclasses.dataclass
class Scrape:
    """`waits` are what was waited for a CPU meanwhile: by each thread of either side, and by each CPU for the hypervisor."""

    begin: float
    clock: float = 0
    stopped: float = 0  # of that, in which tacho was stopped
    waits: list[float] = dataclasses.field(default_factory=list)
    counted: float = 0
    fault: str = ""

    @property
    def waited(self) -> float:
        """What the scrape itself waited at the least: of those that wait at the same time, one alone holds it up."""
        return min(max(self.waits, default=0), self.clock - self.stopped)

    @property
    def took(self) -> float:
        return self.clock - self.stopped - self.waited


class Pause:
    """The last time in which nobody could be answered; none so far."""

    def __init__(self):
        self._begin, self._end = _spawn.Value("d", 0), _spawn.Value("d", 0)

    def begin(self) -> None:
        self._begin.value = time.monotonic()

    def end(self) -> None:
        self._end.value = time.monotonic()

    def within(self, begin: float, end: float) -> float:
        """Seconds of it that lie between these times; it may not be over yet."""
        ended = end if self._end.value < self._begin.value else self._end.value
        return max(0.0, min(end, ended) - max(begin, self._begin.value))


def _changes(before: dict[str, float], after: dict[str, float]) -> list[float]:
    return [value - before.get(name, 0) for name, value in after.items()]


def _read(port: int, pid: int, paused: Pause, end, results) -> None:
    while not end.wait(1):
        waited, taken, begin = waits_for_cpu("self", pid), stolen(), time.monotonic()
        scrape = Scrape(begin)
        try:
            status, body = attack.scrape(port, tls=True, headers=HEADERS, timeout=TIMEOUT)
            scrape.clock = time.monotonic() - begin
            scrape.counted = Samples.parse(body.decode()).get("tacho_requests_total", target="steady")
            scrape.fault = "" if status == 200 else f"answered {status}"
        except (OSError, LookupError, ValueError) as error:
            scrape.clock = time.monotonic() - begin
            scrape.fault = repr(error)
        scrape.stopped = paused.within(begin, begin + scrape.clock)
        scrape.waits = _changes(waited, waits_for_cpu("self", pid)) + _changes(taken, stolen())
        results.put(scrape)


class Reader:
    """Scrapes until it is finished; `paused` tells it when nobody could be answered."""

    def __init__(self, port: int, pid: int):
        self.paused, self._end, self._results = Pause(), _spawn.Event(), _spawn.Queue()
        self._process = _spawn.Process(target=_read, args=(port, pid, self.paused, self._end, self._results), daemon=True)
        self._process.start()

    def finish(self) -> list[Scrape]:
        self._end.set()
        scrapes = []
        while True:
            try:
                scrapes.append(self._results.get(timeout=0.5 if self._process.is_alive() else 0))
            except queue.Empty:
                if not self._process.is_alive():
                    return scrapes
