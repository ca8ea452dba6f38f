"""Requests in flight obey Little's law: their mean is the rate times the mean duration (Little 1961)."""

import itertools
import statistics
import time

import pytest

from support.clients import ExactLoad
from support.servers import ExactServer
from support.tacho import Tacho, target
from support.waiting import wait_until

SECONDS = 5


@pytest.mark.parametrize("rate", [None, 700], ids=["closed loop", "700 a second"])
def test_littles_law(cgroups, rate):
    group = cgroups("little")
    options = {"connections": 20} | ({"rate": rate} if rate else {})
    with (
        ExactServer(group.prefix, mode="threads", reply_delay_us=10_000) as server,
        Tacho({"targets": [target("little", group.path)]}) as tacho,
        ExactLoad(server.address, **options) as load,
    ):
        wait_until(lambda: tacho.requests("little") > 100, 5, "steady load")
        before, started = tacho.scrape(), time.monotonic()
        seen = []
        for number in itertools.count():
            seen.append(tacho.scrape().get("tacho_requests_in_flight", target="little"))
            if time.monotonic() > started + SECONDS:
                break
            # Out of step with a load that has a period.
            time.sleep(0.003 + 0.001 * (number * 7 % 10))
        after, seconds = tacho.scrape(), time.monotonic() - started
        load.finish()

    def of(name):
        return after.get(name, target="little") - before.get(name, target="little")

    throughput = of("tacho_requests_total") / seconds
    duration = of("tacho_request_duration_seconds_sum") / of("tacho_request_duration_seconds_count")
    assert len(seen) > 100
    # Read is when a request begins to be in flight, a moment after it came: the queue's share is part of the duration.
    queue = of("tacho_request_queue_seconds_sum") / of("tacho_request_queue_seconds_count")
    assert queue < 0.02 * duration, f"the server does not read at once: {queue} of {duration} s"
    assert statistics.fmean(seen) == pytest.approx(throughput * duration, rel=0.05)
