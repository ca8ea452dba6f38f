"""Pods on the engine's containerd: tacho with exactly the mounts, capabilities and seccomp profile of the manifests."""

import pytest

from support.exposition import Samples
from support.node import NODE, Pod
from support.pods import PodNode, PodServer, PodTacho, daemon_set, sidecar
from support.waiting import wait_until

PODS = [Pod("shop", f"web-{number}", ["nginx"]) for number in range(4)]
PRIME = 53


@pytest.fixture(scope="module")
def node(engine):
    with PodNode(engine) as running:
        yield running


@pytest.fixture(scope="module")
def servers(node):
    return [PodServer(node.new_pod(pod)) for pod in PODS]


def told(samples: Samples, server: PodServer) -> dict | None:
    found = samples.all("tacho_target_info", container_id=server.id)
    return {name: found[0][0].get(name) for name in ("namespace", "pod", "container")} if found else None


def test_every_start_as_the_daemon_set_names_and_counts_all_pods(node, servers, starts, tmp_path):
    own = node.new_pod(Pod("tacho", "tacho-x2x7k", ["tacho"]))
    for attempt in range(starts // 3):
        with PodTacho(own, *daemon_set(tmp_path), attempt=attempt) as tacho:
            wait_until(lambda tacho=tacho: all(told(tacho.scrape(), server) for server in servers), 5, "all are targets")
            for number, server in enumerate(servers):
                server.serve(PRIME + number)

            def counts(tacho=tacho) -> list[float]:
                text, seconds = tacho.timed_text()
                assert seconds < 1
                samples = Samples.parse(text)
                return [samples.sum("tacho_requests_total", pod=server.pod.name) for server in servers]

            wanted = [PRIME + number for number in range(len(servers))]
            wait_until(lambda counts=counts, wanted=wanted: counts() == wanted, 5, f"start {attempt}: counts {wanted}")
            samples = tacho.scrape()
            for server in servers:
                assert told(samples, server) == {"namespace": "shop", "pod": server.pod.name, "container": "nginx"}
                assert samples.has("tacho_target_info", container_id=server.id, node=NODE)
            assert all(value == 1 for _, value in samples.all("tacho_probe_attached"))
            assert tacho.stop() == 0


def test_a_sidecar_counts_its_own_pod_and_no_other(node, servers, tmp_path):
    pod = Pod("shop", "api-0", ["api", "tacho"])
    running = node.new_pod(pod)
    with PodTacho(running, *sidecar(tmp_path)) as tacho:
        server = PodServer(running)
        wait_until(lambda: tacho.scrape().has("tacho_target_info", container_id=server.id), 5, "the container is a target")
        server.serve(PRIME)
        servers[0].serve(PRIME)
        wait_until(lambda: tacho.scrape().sum("tacho_requests_total", container_id=server.id) == PRIME, 5, "all are counted")
        samples = tacho.scrape()
        assert samples.sum("tacho_requests_total") == PRIME, "no other pod's"
        assert tacho.stop() == 0
