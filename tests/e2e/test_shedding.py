"""tacho keeps its own cost within a limit: what it does without, what stays exact, and that all comes back."""

import contextlib
import subprocess
import time

from support.servers import Redis
from support.tacho import Tacho, target
from support.waiting import wait_until

WINDOW = {"window": "2s"}


def command(server, connections: int, requests: int) -> list:
    return ["redis-benchmark", "-h", "127.0.0.1", "-p", str(server.port), "-n", str(requests), "-c", str(connections), "-t", "get", "-q"]


@contextlib.contextmanager
def endless_load(server, connections: int):
    with subprocess.Popen(command(server, connections, 1_000_000_000), stdout=subprocess.DEVNULL) as load:
        try:
            yield
        finally:
            load.kill()


def replies(server) -> int:
    """That redis has written so far; that to this question counts at the next one."""
    return int(server.info()["total_writes_processed"])


def level(tacho) -> float | None:
    found = tacho.scrape().all("tacho_shed_level", target="redis")
    return found[0][1] if found else None


def holds(tacho, condition: str) -> bool:
    return tacho.scrape().get("tacho_target_condition", target="redis", condition=condition) == 1


def costs(tacho, seconds: float) -> tuple[float, float]:
    """What tacho's programs take now: as a share of the target's CPU time, and in seconds an operation."""

    def look():
        samples = tacho.scrape()
        return (
            samples.sum("tacho_overhead_seconds_total", target="redis"),
            samples.get("tacho_thread_state_seconds_total", target="redis", state="running"),
            samples.sum("tacho_socket_operations_total", target="redis"),
        )

    before = look()
    time.sleep(seconds)
    own, cpu, operations = (after - earlier for after, earlier in zip(look(), before, strict=True))
    return own / cpu, own / operations


def test_counts_stay_exact_at_the_levels_before_the_last_one(cgroups):
    """Eight connections are too few for the last level, and redis has no use for the third and fourth."""
    group = cgroups("redis")
    config = {"targets": [target("redis", group.path)], "limits": {"overhead": "0.1%"}, **WINDOW}
    with Redis(group.prefix) as server, Tacho(config) as tacho:
        with tacho.watch("redis") as change:
            assert level(tacho) is None
            before = replies(server)
            with endless_load(server, 8):
                wait_until(lambda: level(tacho) == 2, 20, "intervals and polls are shed")
                tacho.process.wait_for_line(r"WARN .* redis costs too much and is at level 2: without intervals, polls$")
                tacho.process.wait_for_line(r"WARN .* redis still costs too much at level 2$")
                assert holds(tacho, "shed") and not holds(tacho, "shed_requests")
                settled = tacho.scrape()
                time.sleep(1)
                later = tacho.scrape()
                for stands_still in ("tacho_socket_intervals_total", "tacho_polls_total", "tacho_idle_seconds_total"):
                    assert later.sum(stands_still, target="redis") == settled.sum(stands_still, target="redis"), stands_still
                assert later.get("tacho_requests_total", target="redis") > settled.get("tacho_requests_total", target="redis")
            wait_until(lambda: int(server.info("clients")["connected_clients"]) == 1, 5, "redis has seen the load end")
        asked = replies(server) - before
        assert change.requests == asked == change.of("tacho_request_duration_seconds_count")
        assert tacho.scrape().get("tacho_requests_in_flight", target="redis") == 0

        wait_until(lambda: level(tacho) == 0, 60, "all comes back")
        tacho.process.wait_for_line(r"WARN .* redis costs less again and is at level 0: without nothing$")
        wait_until(lambda: not holds(tacho, "shed"), 5, "the condition goes with it")
        with tacho.watch("redis") as change:
            subprocess.run(command(server, 8, 10_000), check=True, stdout=subprocess.DEVNULL, timeout=60)
        assert change.requests >= 10_000
        assert change.of("tacho_socket_intervals_total", direction="receive") + change.of("tacho_socket_idle_gaps_total", direction="receive") == change.receives


def test_a_limit_that_is_set_while_it_runs_is_kept_and_exact_counts_come_back_with_the_end_of_it(cgroups):
    group = cgroups("redis")
    free = {"targets": [target("redis", group.path)], **WINDOW}
    with Redis(group.prefix) as server, Tacho(free) as tacho:
        tacho.wait_for_target("redis")
        with tacho.watch("redis") as change:
            before = replies(server)
            with endless_load(server, 50):
                time.sleep(1)
                _, all_told = costs(tacho, 3)
                assert level(tacho) is None
                tacho.configure({**free, "limits": {"overhead": "2%"}})
                assert tacho.reload() == 200
                wait_until(lambda: level(tacho) == 5, 20, "most connections are not followed")
                assert holds(tacho, "shed") and holds(tacho, "shed_requests")
                share, shed = costs(tacho, 4)
                assert shed < all_told / 2
                assert share < 0.02 or "still costs too much at level 5" in tacho.process.output
            wait_until(lambda: int(server.info("clients")["connected_clients"]) == 1, 5, "redis has seen the load end")
        asked = replies(server) - before
        assert abs(change.requests - asked) < 0.05 * asked

        tacho.configure(free)
        assert tacho.reload() == 200
        wait_until(lambda: level(tacho) == 0, 5, "no limit, nothing shed")
        with tacho.watch("redis") as change:
            before = replies(server)
            subprocess.run(command(server, 50, 20_000), check=True, stdout=subprocess.DEVNULL, timeout=60)
        asked = replies(server) - before
        assert change.requests == asked >= 20_000
