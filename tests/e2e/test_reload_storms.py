"""Reloads by the dozen and signals by the thousand: nobody who reads waits for them, and none of them waits for ever."""

import concurrent.futures
import contextlib
import os
import signal
import time

import pytest

from support import attack, ending, net, stopper
from support.cgroup import Cgroup
from support.tacho import Tacho, target
from support.waiting import wait_until

SECONDS = 2
ELSEWHERE = "127.99.99.99"
AT_ONCE = 12
PATIENCE = 8  # of who waits for a reload (exporter/reload.cpp)


def timed_reload(tacho) -> tuple[int, float]:
    """Status, and the seconds that it took."""
    began = time.monotonic()
    status = net.exchange(tacho.address, "/-/reload", method="POST", timeout=30)[0]
    return status, time.monotonic() - began


def check_that_all_is_well(tacho, pool) -> None:
    """Another reload, a scrape, and the end, which waits for no reload."""
    wait_until(lambda: tacho.reload() == 200, 5, "the next reload works")
    assert attack.scrape(tacho.port, source=ELSEWHERE)[0] == 200
    asked = [pool.submit(timed_reload, tacho) for _ in range(AT_ONCE)]  # due in a second
    concurrent.futures.wait(asked, return_when=concurrent.futures.FIRST_COMPLETED)  # one is told that another one waits
    assert ending.seconds_to_end(tacho) < ending.LIMIT
    assert tacho.process.wait() == 0
    for one in asked:
        with contextlib.suppress(OSError):  # it was cut off
            status, took = one.result()
            assert status in (200, 429, 500) and took < PATIENCE / 2


def test_reloads_that_the_main_thread_never_begins_hold_up_nobody():
    """One waits, for so long and no longer; the others are told to ask again. More of them than threads that answer."""
    with Tacho({"targets": []}) as tacho, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        most = attack.limit(tacho.port, source=ELSEWHERE)
        with stopper.stopped(stopper.thread_named(tacho.pid, "tacho")):
            asked = [pool.submit(timed_reload, tacho) for _ in range(AT_ONCE)]
            times = attack.times_of_scrapes(tacho.port, PATIENCE, source=ELSEWHERE)
            *at_once, last = sorted((one.result() for one in asked), key=lambda answer: answer[1])
        print(f"the slowest of {len(times)} scrapes took {max(times):.2f} s; reloads: {at_once[-1]}, {last}")
        assert max(times) <= most
        assert {status for status, _ in at_once} == {429} and at_once[-1][1] < PATIENCE / 2
        assert last[0] == 503 and PATIENCE <= last[1] < PATIENCE + 2
        check_that_all_is_well(tacho, pool)


def test_reloads_while_the_collector_stands_still_are_answered_when_it_goes_on():
    """Who serves the network says what it knows itself meanwhile."""
    with Tacho({"targets": []}) as tacho, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        most = attack.limit(tacho.port, source=ELSEWHERE)
        os.kill(tacho.pid, signal.SIGSTOP)
        try:
            asked = [pool.submit(timed_reload, tacho) for _ in range(AT_ONCE)]
            times = attack.times_of_scrapes(tacho.port, SECONDS, source=ELSEWHERE, path="/-/healthy", word=b"tacho is healthy")
            assert not any(one.done() for one in asked)
        finally:
            os.kill(tacho.pid, signal.SIGCONT)
        statuses = sorted(one.result()[0] for one in asked)
        print(f"the slowest of {len(times)} looks took {max(times):.2f} s; reloads: {statuses}")
        assert max(times) <= most
        assert 200 in statuses and set(statuses) <= {200, 429}
        check_that_all_is_well(tacho, pool)


@pytest.fixture(scope="module")
def busy():
    """A tacho whose reloads have something to do."""
    with contextlib.ExitStack() as stack:
        parent = stack.enter_context(Cgroup("storms"))
        for number in range(64):
            stack.enter_context(Cgroup(f"s{number}", parent))
        with Tacho({"targets": [target("s", f"{parent.path}/s*")]}) as tacho:
            wait_until(lambda: tacho.scrape().get("tacho_targets") == 64, 10, "all are watched")
            yield tacho


@pytest.mark.parametrize("clients", [4, 12, 0], ids=["4 clients", "12 clients", "SIGHUP"])
def test_a_storm_of_reloads_delays_no_scrape(busy, clients):
    most = attack.limit(busy.port, source=ELSEWHERE)
    before, began = busy.process.line_count, time.monotonic()
    step = (lambda: timed_reload(busy)) if clients else (lambda: os.kill(busy.pid, signal.SIGHUP))
    with attack.Crowd(clients or 1, step) as storm:
        times = attack.times_of_scrapes(busy.port, SECONDS, source=ELSEWHERE)
        asked = storm.steps
    took = time.monotonic() - began
    done = sum("configuration read again" in line for line in busy.process.output.splitlines()[before:])
    print(f"{asked} reloads were asked for, {done} done; the slowest of {len(times)} scrapes took {max(times):.2f} s")
    assert asked > 10 * SECONDS, "the storm was none"
    assert max(times) <= most
    assert 1 <= done <= took + 2, f"{done} reloads in {took:.1f} s"
