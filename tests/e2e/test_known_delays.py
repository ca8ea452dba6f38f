"""Queue and service times against a server that knows how long it let requests wait: within 5 % or 100 µs."""

import pytest

from support.clients import exact
from support.servers import ExactServer
from support.tacho import Tacho, target

REQUESTS = 211
# Ahead of others: the server starts its clock when it is woken, tacho when data is there.
SOON = ["nice", "-n", "-15"]


def close_enough(seconds: float, known: float) -> bool:
    return abs(seconds - known) <= max(0.05 * known, 100e-6)


@pytest.mark.parametrize(
    "connections, read_delay_us, reply_delay_us",
    [(1, 0, 0), (1, 400, 700), (1, 0, 5000), (1, 5000, 0), (4, 0, 5000), (4, 5000, 0), (4, 3000, 7000)],
)
def test_mean_times(cgroups, connections, read_delay_us, reply_delay_us):
    group = cgroups("delays")
    options = {"mode": "threads", "read_delay_us": read_delay_us, "reply_delay_us": reply_delay_us}
    prefix = [*group.prefix, *SOON]
    with ExactServer(prefix, **options) as server, Tacho({"targets": [target("delays", group.path)]}) as tacho:
        with tacho.watch("delays") as change:
            exact(server.address, REQUESTS, connections=connections)
        served = server.finish()

    def mean(family: str) -> float:
        assert change.of(f"tacho_request_{family}_seconds_count") == REQUESTS
        return change.of(f"tacho_request_{family}_seconds_sum") / REQUESTS

    # The server's clock, not the wish: a sleep takes a little longer than it was asked to.
    queue, service = served["queue_seconds"] / REQUESTS, served["service_seconds"] / REQUESTS
    assert queue >= read_delay_us * 1e-6 and service >= reply_delay_us * 1e-6
    assert close_enough(mean("queue"), queue), f"queue: tacho {mean('queue')}, server {queue}"
    assert close_enough(mean("service"), service), f"service: tacho {mean('service')}, server {service}"
    assert close_enough(mean("duration"), queue + service), f"duration: tacho {mean('duration')}"
    assert mean("duration") >= mean("queue")


def test_delays_fall_into_their_bucket(cgroups):
    group = cgroups("buckets")
    with (
        ExactServer(group.prefix, reply_delay_us=8_000) as server,
        Tacho({"targets": [target("buckets", group.path)], "histograms": {"buckets_per_octave": 1}}) as tacho,
    ):
        with tacho.watch("buckets") as change:
            exact(server.address, REQUESTS, connections=8)
    below = {
        float(labels["le"]): value
        for labels, value in change.after.all("tacho_request_service_seconds_bucket", target="buckets")
    }
    assert below[float("inf")] == REQUESTS
    counts = [count for _, count in sorted(below.items())]
    assert counts == sorted(counts), "buckets are cumulative"
    assert all(count == 0 for bound, count in below.items() if bound <= 0.008)
    # All but a few that the scheduler held up ended within the next octave.
    assert any(bound <= 0.016 and count >= 0.95 * REQUESTS for bound, count in below.items())


def test_a_queue_builds_up_before_one_busy_thread(cgroups):
    """Four clients, one event loop, 2 ms each: a request waits for the three before it."""
    group = cgroups("queue")
    with (
        ExactServer(group.prefix, mode="epoll", reply_delay_us=2000) as server,
        Tacho({"targets": [target("queue", group.path)]}) as tacho,
    ):
        with tacho.watch("queue") as change:
            exact(server.address, REQUESTS, connections=4)
        service = server.finish()["service_seconds"] / REQUESTS
    queue = change.of("tacho_request_queue_seconds_sum") / REQUESTS
    # The client answers at once, so that three are always waiting (but at the beginning and the end).
    assert queue == pytest.approx(3 * service, rel=0.1)
