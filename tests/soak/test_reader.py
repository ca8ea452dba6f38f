"""What the soak takes from a scrape's time: that for which tacho was stopped, and what the scrape itself waited for a CPU."""

import contextlib
import os
import subprocess
import time

from support.waiting import wait_until

from reader import Pause, Scrape, waits_for_cpu


def test_who_waits_at_the_same_time_holds_up_a_scrape_once():
    assert Scrape(0, clock=3, waits=[0.5, 1, 1, 0.9]).took == 2
    assert Scrape(0, clock=3).took == 3
    assert Scrape(0, clock=3, stopped=1, waits=[0.5]).took == 1.5
    assert Scrape(0, clock=3, stopped=1, waits=[2.5]).took == 0, "no more than there was"


def test_a_stop_is_taken_as_far_as_the_scrape_was_under_way():
    pause = Pause()
    assert pause.within(0, time.monotonic()) == 0, "there was none"
    before = time.monotonic()
    pause.begin()
    begun = time.monotonic()
    assert pause.within(begun, begun + 2) == 2, "it is not over"
    pause.end()
    ended = time.monotonic()
    assert pause.within(ended, ended + 1) == 0
    assert pause.within(before - 1, before) == 0
    assert 0 <= pause.within(before - 1, ended + 1) <= ended - before


def test_waits_are_those_of_each_that_was_started():
    """Two want the same CPU, beside which this one sleeps."""
    cpu = min(os.sched_getaffinity(0))
    with contextlib.ExitStack() as stack:
        pids = []
        for _ in range(2):
            loop = subprocess.Popen(["taskset", "--cpu-list", str(cpu), "sh", "-c", "while :; do :; done"])
            stack.callback(loop.wait)
            stack.callback(loop.kill)
            pids.append(loop.pid)

        def least() -> float:
            waited = waits_for_cpu(os.getpid())
            return min(waited[f"/proc/{pid}/task/{pid}/schedstat"] for pid in pids)

        wait_until(lambda: least() > 0.1, 20, "both have waited for the other")
