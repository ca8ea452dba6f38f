"""How many series a target has: the budget, for an idle target and three real servers under load, in every form."""

import collections

import pytest

from support import ledger, protobuf
from support.cgroup import Cgroup
from support.clients import redis_benchmark, wrk
from support.clients.pgbench import initialize, pgbench_latencies
from support.exposition import OPENMETRICS, TEXT, Samples, first_event_families
from support.servers import Nginx, Postgres, Redis
from support.tacho import Tacho, target
from support.waiting import wait_until

# Of a target that nobody else calls for and that calls nobody: a dependency has series of its own.
MOST = {"text": 120, "native": 60}
# Its requests and replies come in pieces, its threads wait for the disk: each of that is a family more. In how many
# system calls they sleep depends on the disk: each is a series beside these, up to seven.
MOST_OF_POSTGRESQL = {"text": 114, "native": 61}
MOST_CALLS = 7

CORE = {
    "tacho_requests_total", "tacho_request_duration_seconds_count", "tacho_request_queue_seconds_count", "tacho_requests_in_flight",
    "tacho_requests_unanswered_total", "tacho_connections_total", "tacho_connections_active", "tacho_socket_operations_total",
    "tacho_socket_bytes_total", "tacho_thread_state_seconds_total", "tacho_cpu_limit_cores", "tacho_saturation_ratio",
    "tacho_saturation_ratio_error", "tacho_target_condition",
}  # fmt: skip


def of_target(samples: Samples, name: str) -> dict[tuple, float]:
    return {key: value for key, value in samples.values.items() if ("target", name) in key[1]}


def names(samples: Samples, name: str) -> set[str]:
    return {sample for sample, _ in of_target(samples, name)}


def bounds(samples: Samples, name: str) -> dict[str, set[str]]:
    """By histogram: the bounds of its buckets."""
    found: dict[str, set[str]] = {}
    for sample, labels in of_target(samples, name):
        if sample.endswith("_bucket"):
            found.setdefault(sample, set()).add(dict(labels)["le"])
    return found


def native_series(tacho: Tacho, name: str) -> int:
    """What Prometheus stores of the native form: one series a histogram."""
    _, _, body = tacho.http("/metrics", headers={"Accept": protobuf.ACCEPT})
    metrics = [metric for family in protobuf.families(body) for metric in family.metric]
    return sum(protobuf.labels_of(metric).get("target") == name for metric in metrics)


@pytest.fixture(scope="module")
def scene():
    """tacho with an idle target and busy ones, and the expositions before and after the load."""
    with Cgroup("idle") as idle, Cgroup("redis") as r, Cgroup("nginx") as n, Cgroup("postgresql") as p:
        groups = {"idle": idle, "redis": r, "nginx": n, "postgresql": p}
        config = {"targets": [target(name, group.path) for name, group in groups.items()]}
        with Redis(r.prefix) as redis, Nginx(n.prefix) as nginx, Postgres(p.prefix) as postgres, Tacho(config) as tacho:
            wait_until(lambda: len(tacho.own_targets()) == len(groups), 20, "all targets")
            initialize(postgres)
            before = tacho.scrape()
            redis_benchmark(redis.port, 30_000)
            wrk(nginx.url("/return"), seconds=2)
            pgbench_latencies(postgres, transactions=500, connections=4)
            tacho.settled("postgresql")
            yield tacho, before, tacho.scrape()


@pytest.mark.parametrize("name", ["idle", "redis", "nginx", "postgresql"])
def test_a_target_keeps_to_the_budget(scene, name):
    tacho, _, after = scene
    text, native = len(of_target(after, name)), native_series(tacho, name)
    ledger.note(f"{name}: {text} series in text, {native} with native histograms")
    most = MOST
    if name == "postgresql":
        calls = sum(sample == "tacho_offcpu_seconds_total" for sample, _ in of_target(after, name))
        most = {form: bound + min(calls, MOST_CALLS) for form, bound in MOST_OF_POSTGRESQL.items()}
    assert text <= most["text"] and native <= most["native"], collections.Counter(sample for sample, _ in of_target(after, name))
    openmetrics = Samples.parse(tacho.text(OPENMETRICS), openmetrics=True)
    assert of_target(openmetrics, name).keys() == of_target(Samples.parse(tacho.text(TEXT)), name).keys()


def test_the_core_is_there_at_zero_and_nothing_that_an_idle_target_has_no_use_for(scene):
    _, _, after = scene
    assert CORE <= names(after, "idle")
    assert after.get("tacho_requests_total", target="idle") == 0
    rare = {name for name, _ in of_target(after, "idle") if name in first_event_families()}
    assert not rare, "no process ever ran in it"


def test_what_happened_is_there(scene):
    _, _, after = scene
    for name in ("redis", "nginx", "postgresql"):
        assert CORE | {"tacho_polls_total", "tacho_poll_duration_seconds_sum", "tacho_request_service_seconds_sum",
                       "tacho_connection_accept_wait_seconds_sum", "tacho_threads", "tacho_idle_seconds_total",
                       "tacho_runqueue_delay_seconds_sum"} <= names(after, name)  # fmt: skip
        assert after.get("tacho_poll_duration_seconds_count", target=name) == after.sum("tacho_polls_total", target=name)


def test_no_series_disappears(scene):
    tacho, before, after = scene
    for name in ("idle", "redis", "nginx", "postgresql"):
        assert of_target(before, name).keys() <= of_target(after, name).keys()
    cgroups = {row["target"]: row["cgroup"] for row in tacho.targets()["targets"]}
    tacho.configure({"window": "20s", "targets": [target(name, cgroup) for name, cgroup in cgroups.items()]})
    assert tacho.reload() == 200
    later = tacho.scrape()
    for name in ("idle", "redis", "nginx", "postgresql"):
        assert of_target(after, name).keys() - of_target(later, name).keys() <= judged_over_the_window(after, name)


def judged_over_the_window(samples: Samples, name: str) -> set[tuple]:
    """Absent until there are samples of the new window."""
    judged = ("tacho_target_condition", "tacho_saturation_ratio", "tacho_saturation_ratio_error")
    return {key for key in of_target(samples, name) if key[0] in judged}


def test_buckets_are_the_same_whatever_was_observed(scene):
    _, _, after = scene
    idle, busy = bounds(after, "idle"), [bounds(after, name) for name in ("redis", "nginx", "postgresql")]
    for family, expected in idle.items():
        assert all(each[family] == expected for each in busy), family
    assert len({frozenset(each["tacho_request_service_seconds_bucket"]) for each in busy}) == 1
