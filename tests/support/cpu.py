"""CPU time of a process."""

import pathlib


def cpu_seconds(pid: int) -> float:
    """Of all threads, to the nanosecond, unlike stat's ticks (Documentation/scheduler/sched-stats.rst)."""
    return sum(int(file.read_text().split()[0]) for file in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def waited_for_cpu(thread: int) -> float:
    """Seconds in which this one thread could have run and others had the CPUs: what a busy machine takes from it."""
    return int(pathlib.Path(f"/proc/{thread}/schedstat").read_text().split()[1]) / 1e9
