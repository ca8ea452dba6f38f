"""How long tacho takes to end."""

import contextlib
import signal
import time

from support import stopper
from support.cpu import waited_for_cpu
from support.waiting import wait_until

PF_EXITING = 4  # include/linux/sched.h
# What is under way may go on for 0.9 s, and nothing for longer than a second (exporter/watch.cpp); and as much again.
LIMIT = 2.0


def has_ended(pid: int) -> bool:
    """Whether it executes nothing any more. The kernel may take another second to give its BPF programs back."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            state, *numbers = stat.read().rpartition(")")[2].split()
    except FileNotFoundError:
        return True
    return state in "ZX" or bool(int(numbers[5]) & PF_EXITING)


def seconds_to_end(tacho) -> float:
    """From SIGTERM until none of its processes executes anything; without what the thread that ends it waited for a CPU."""
    watch = stopper.thread_named(tacho.pid, "tacho-watch")
    processes = tacho.processes()
    before = waited = waited_for_cpu(watch)

    def all_ended() -> bool:
        nonlocal waited
        with contextlib.suppress(OSError, IndexError):  # it is no more
            waited = waited_for_cpu(watch)
        return all(map(has_ended, processes))

    began = time.monotonic()
    tacho.process.signal(signal.SIGTERM)
    # Who is stopped by a test is traced by it, which has to let it be killed: it is not waited for with waitpid().
    wait_until(all_ended, 20, "it has ended")
    took = time.monotonic() - began
    print(f"it was gone after {took:.2f} s, {waited - before:.2f} s of which its watch waited for a CPU")
    return took - (waited - before)
