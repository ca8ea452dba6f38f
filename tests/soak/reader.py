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


def waits_for_cpu(*processes: int | str) -> float:
    """Seconds that their threads, and those of what they started, have waited for a CPU so far
    (Documentation/scheduler/sched-stats.rst)."""
    waited = 0
    found = list(processes)
    for process in found:
        for file in pathlib.Path(f"/proc/{process}/task").glob("*/children"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found += file.read_text().split()
        for file in pathlib.Path(f"/proc/{process}/task").glob("*/schedstat"):
            try:
                waited += int(file.read_text().split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue  # a thread that has ended
    return waited / 1e9


def stolen() -> float:
    """Seconds in which the hypervisor let others run on the CPU that it took most from, so far (proc(5), /proc/stat)."""
    cpus = [line.split() for line in pathlib.Path("/proc/stat").read_text().splitlines() if re.match(r"cpu\d", line)]
    return max(int(fields[8]) for fields in cpus) / os.sysconf("SC_CLK_TCK")


def waited_so_far(pid: int) -> float:
    return waits_for_cpu("self", pid) + stolen()


@dataclasses.dataclass
class Scrape:
    begin: float
    took: float  # without what both sides waited for a CPU, which others had, on this machine or beside it
    clock: float  # with it
    counted: float
    fault: str = ""


class Pause:
    """While nobody can be answered: what was asked before it began is answered late, too."""

    def __init__(self):
        self._on, self._begun = _spawn.Event(), _spawn.Value("i", 0)

    def set(self) -> None:
        self._on.set()
        self._begun.value += 1

    def clear(self) -> None:
        self._on.clear()

    def is_set(self) -> bool:
        return self._on.is_set()

    def begun(self) -> int:
        """How often so far."""
        return self._begun.value


def _read(port: int, pid: int, paused: Pause, end, results) -> None:
    while not end.wait(1):
        pauses = paused.begun()
        if paused.is_set():
            continue
        waited, begin = waited_so_far(pid), time.monotonic()
        try:
            status, body = attack.scrape(port, tls=True, headers="Accept: text/plain;version=0.0.4\r\n", timeout=30)
            clock = time.monotonic() - begin
            took = clock - (waited_so_far(pid) - waited)
            counted = Samples.parse(body.decode()).get("tacho_requests_total", target="steady")
            scrape = Scrape(begin, took, clock, counted, "" if status == 200 else f"answered {status}")
        except (OSError, LookupError, ValueError) as error:
            scrape = Scrape(begin, 0, 0, 0, repr(error))
        if paused.begun() == pauses:
            results.put(scrape)


class Reader:
    """Scrapes until it is finished, but while `paused` is set."""

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
