"""A node of Kubernetes, simulated: real cgroups and the kubelet's links, for every runtime and driver."""

import itertools
import json
import statistics
import time

import pytest

from support.cgroup import joining
from support.clients import exact
from support.exposition import Samples
from support.footprint import Footprint
from support.node import NODE, RUNTIMES, Node, Pod
from support.servers import ExactServer
from support.slow import slow_but
from support.tacho import Tacho
from support.waiting import wait_until

ALL = {"targets": [{"name": "node", "container": {"namespace": "*"}}], "probes": {"poll": {"enabled": False}}}
REQUESTS = 23
PODS = 500
CHURN = 100
# After half of them all that is remembered of the pods that are gone is there, and buffers have grown.
ROUNDS = 8
LOOKED_AT = (4, 6, 8)
MEGABYTE = 1 << 20

API = Pod("shop", "api-6d4cf56db6-x2x7k", ["init-db", "api", "metrics-proxy"], workload=("api", "Deployment"))
BATCH = Pod("batch", "job-29383200-9xkql", ["run"], quality="besteffort", workload=("job", "CronJob"))
DATABASE = Pod("shop", "db-0", ["postgres"], quality="guaranteed", workload=("db", "StatefulSet"))
STATIC = Pod("kube-system", f"etcd-{NODE}", ["etcd"], static=True, workload=("etcd", "StaticPod"))
# 198 + 21 + 8 + 64 characters: 24 of the id's are left in the link's name.
LONG = Pod("a-namespace-of-26-letters", "p" * 190, ["c" * 8])
PODS_OF_A_NODE = [API, BATCH, DATABASE, STATIC, LONG]


def told(tacho) -> set[frozenset]:
    """tacho_target_info of every container that is there; the rest of a large page is not parsed."""
    there = {entry["container_id"] for entry in tacho.targets()["targets"] if entry["state"] == "live"}
    lines = [line for line in tacho.text().splitlines(keepends=True) if "tacho_target_info" in line]
    return {
        frozenset((name, value) for name, value in labels.items() if name not in ("target", "unit"))
        for labels, _ in Samples.parse("".join(lines)).all("tacho_target_info")
        if labels["container_id"] in there
    }


def expected(node, pods) -> set[frozenset]:
    return {frozenset(node.labels_of(pod, name).items()) for pod in pods for name in pod.containers}


@pytest.fixture
def tacho_on(cgroups, tmp_path):
    """tacho_on(runtime) gives a simulated node; tacho has to be started with its log directory."""
    return lambda runtime: Node(cgroups("node"), tmp_path / "log", RUNTIMES[runtime])


def observing(node: Node, **more) -> Tacho:
    return Tacho({**ALL, **more}, flags=[f"--path.log={node.log}", f"--path.lib={node.log}", f"--node.name={NODE}"])


@pytest.mark.parametrize("runtime", slow_but(["containerd, systemd", "CRI-O, cgroupfs", "kind"], RUNTIMES, "more runtimes"))
def test_every_container_is_called_what_the_kubelet_calls_it(tacho_on, runtime):
    node = tacho_on(runtime)
    for pod in PODS_OF_A_NODE:
        node.add(pod)
    cut = [link.name for link in (node.log / "containers").iterdir() if len(link.name) == 255]
    assert len(cut) == 1 and not cut[0].endswith(f"{LONG.id_of(LONG.containers[0])}.log"), "one link's name is cut"
    with observing(node) as tacho:
        # Pause containers and monitors are not among them.
        assert told(tacho) == expected(node, PODS_OF_A_NODE)
        late = Pod("shop", "late", ["app"])
        node.add(late)
        wait_until(lambda: told(tacho) == expected(node, [*PODS_OF_A_NODE, late]), 2, "the pod that came later")
        node.remove(BATCH)
        wait_until(lambda: told(tacho) == expected(node, [API, DATABASE, STATIC, LONG, late]), 2, "one pod less")


@pytest.mark.parametrize("runtime", slow_but(["containerd, systemd", "CRI-O, cgroupfs", "kind"], RUNTIMES, "more runtimes"))
def test_requests_carry_the_labels_and_a_restart_goes_on(tacho_on, runtime):
    node = tacho_on(runtime)
    node.add(API)
    labels = {"namespace": "shop", "pod": API.name, "container": "api"}

    def serve(attempt: int) -> None:
        inside = node.directory(node.path_of(API, "api", attempt)) / node.runtime.inner
        with ExactServer(joining(inside)) as server:
            exact(server.address, REQUESTS, connections=2)

    def counted() -> float:
        return tacho.settled("node").get("tacho_requests_total", **labels)

    with observing(node) as tacho:
        serve(0)
        assert counted() == REQUESTS
        wait_until(lambda: _stopped(node, API, "api"), 5, "the container has ended")
        wait_until(lambda: not tacho.scrape().has("tacho_requests_total", **labels), 30, "its series have ended")
        node.start(API, "api", 1)
        wait_until(lambda: tacho.scrape().has("tacho_requests_total", **labels), 2, "it is there again")
        serve(1)
        assert counted() == 2 * REQUESTS
        wait_until(lambda: _stopped(node, API, "api", 1), 5, "the container has ended")


def _stopped(node: Node, *container) -> bool:
    """An OSError while its last process is on its way out."""
    node.stop(*container)
    return True


def test_500_pods_and_their_churn(tacho_on):
    node = tacho_on("containerd, systemd")
    numbers = itertools.count()

    def new_pods(count: int) -> list[Pod]:
        pods = [Pod("shop", f"web-{next(numbers)}", ["app"], workload=("web", "StatefulSet")) for _ in range(count)]
        for pod in pods:
            node.add(pod)
        return pods

    def seen(pod: Pod) -> bool:
        found = json.loads(tacho.http(f"/api/v1/targets?filter={pod.id_of('app')}&limit=1")[2])
        return found["matched"] == 1

    pods = new_pods(PODS)
    waits = []
    with observing(node, limits={"max_targets": PODS + CHURN}) as tacho:
        assert told(tacho) == expected(node, pods)
        footprints = []
        for number in range(1, ROUNDS + 1):
            for pod in pods[:CHURN]:
                node.remove(pod)
            pods = pods[CHURN:] + new_pods(CHURN)
            began = time.monotonic()
            wait_until(lambda: seen(pods[-1]), 5, "the last pod", interval=0.01)
            waits.append(time.monotonic() - began)
            wanted = expected(node, pods)
            wait_until(lambda: told(tacho) == wanted, 10, "exactly the pods that are there")
            if number in LOOKED_AT:
                # By a reader that has come before, too: it is the same one that makes the footprints.
                wait_until(lambda: tacho.text() and len(tacho.targets()["targets"]) == PODS, 30, "those that ended have been read")
                footprints.append(Footprint(tacho))
        # News of so many cgroups at once may not fit into the ring: then tacho looks at all of them.
        lost = [labels for labels, events in tacho.scrape().all("tacho_lost_events_total")
                if events and labels["reason"] != "skipped" and (labels["probe"], labels["reason"]) != ("targets", "ring_full")]  # fmt: skip
    for pod in pods:
        node.remove(pod)
    first, *_, last = footprints
    grown = [after.written - before.written for before, after in itertools.pairwise(footprints)]
    print(f"seen after {', '.join(f'{wait:.2f}' for wait in waits)} s; {last.series} series, {last.written / MEGABYTE:.0f} MiB, "
          f"more after rounds {LOOKED_AT}: {[round(each / MEGABYTE, 1) for each in grown]}")  # fmt: skip
    assert statistics.median(waits) < 1
    assert last.series == first.series and last.targets == PODS
    assert last.map_entries == first.map_entries
    assert last.descriptors == first.descriptors
    # One more reader at the same moment makes the heap larger once; what leaks does so each time.
    assert min(grown) < 2 * MEGABYTE
    assert not lost
