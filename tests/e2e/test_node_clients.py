"""The kubelet's probes are no requests of users, where a target says so: told by who asks, not by the address."""

import contextlib
import hashlib
import os
import signal

import pytest

from support.cgroup import Cgroup, joining
from support.clients import exact
from support.net import own_network
from support.servers import ExactServer
from support.tacho import Tacho, target
from support.waiting import wait_until

ADDRESS, GATEWAY = "10.203.77.2", "10.203.77.1"
PID_NAMESPACE = ["unshare", "--pid", "--fork", "--kill-child"]
PROBES, REQUESTS = 17, 101


@pytest.fixture
def network():
    """Words before a command that put it into a network namespace, as a pod's, which the machine reaches at ADDRESS."""
    with own_network(ADDRESS, GATEWAY) as prefix:
        yield prefix


@contextlib.contextmanager
def server_of_container(prefix, directory, **options):
    """The first process of a process namespace: `unshare`, its parent, leaves signals to it."""
    with ExactServer([*prefix, *PID_NAMESPACE], **options) as server:
        yield server
        os.kill(first_process(directory), signal.SIGTERM)
        server.process.wait()


def first_process(directory) -> int:
    (first,) = [int(pid) for pid in (directory / "cgroup.procs").read_text().split()
                if open(f"/proc/{pid}/comm").read().strip() == "exact_server"]  # fmt: skip
    return first


@pytest.fixture
def containers(cgroups):
    """containers(name): the cgroup of a container of that name, as runtimes call it."""
    node = cgroups("node")
    return lambda name: Cgroup(hashlib.sha256(name.encode()).hexdigest(), node)


def counted(tacho, name: str = "web") -> tuple[float, float]:
    """Requests, and those of the node itself."""
    samples = tacho.settled(name)
    return (samples.get("tacho_requests_total", target=name),
            samples.get("tacho_node_requests_total", target=name, role="server"))  # fmt: skip


def inside(directory) -> list[str]:
    """Words before a command that put it into a container, beside what it runs, as a runtime does for `exec`."""
    return [*joining(directory), "nsenter", f"--target={first_process(directory)}", "--pid", "--net"]


def test_probes_are_told_from_requests_that_come_from_the_same_address(cgroups, containers, network):
    web, user, kubelet = containers("web"), containers("user"), cgroups("kubelet.service")
    with Tacho({"targets": [target("web", web.path, exclude_clients="node")]}) as tacho:
        tacho.wait_for_target("web")
        with server_of_container([*web.prefix, *network], web.directory, listen=f"{ADDRESS}:0") as server:
            exact(server.address, PROBES, prefix=kubelet.prefix, requests_per_connection=1)
            assert counted(tacho) == (0, PROBES)
            # A pod in the node's own network, such as an ingress: the same address, but a container.
            exact(server.address, REQUESTS, prefix=user.prefix, connections=3)
            assert counted(tacho) == (REQUESTS, PROBES)
            # An exec probe; `kubectl exec` is none of a user's requests either.
            exact(server.address, 2 * PROBES, prefix=inside(web.directory))
            assert counted(tacho) == (REQUESTS, 3 * PROBES)
            samples = tacho.settled("web")
            assert samples.get("tacho_request_duration_seconds_count", target="web") == REQUESTS
            assert samples.get("tacho_connections_total", target="web", role="server") == 3
            # The probe's call is none of the container's.
            assert samples.get("tacho_node_requests_total", target="web", role="client") == 2 * PROBES
            assert samples.sum("tacho_dependency_calls_total", target="web") == 0
            # In the process namespace of others nobody can be told: a user's.
            exact(server.address, 7, prefix=[*web.prefix, *network])
            assert counted(tacho) == (REQUESTS + 7, 3 * PROBES)
            assert tacho.settled("web").sum("tacho_dependency_calls_total", target="web") == 7
        assert tacho.scrape().get("tacho_requests_unanswered_total", target="web") == 0


def test_exec_probes_over_a_unix_socket_are_told_too(containers, tmp_path):
    web = containers("web")
    with Tacho({"targets": [target("web", web.path, exclude_clients="node")]}) as tacho:
        tacho.wait_for_target("web")
        with server_of_container(web.prefix, web.directory, listen=f"unix:{tmp_path}/socket") as server:
            exact(server.address, PROBES, prefix=inside(web.directory))
            assert counted(tacho) == (0, PROBES)
            exact(server.address, REQUESTS, prefix=web.prefix, connections=2)
            assert counted(tacho) == (REQUESTS, PROBES)


def test_a_reload_begins_and_ends_it(cgroups, containers):
    web = containers("web")

    def config(who: str) -> dict:
        return {"discovery": {"listeners": "always", "exclude_clients": who}}

    with contextlib.ExitStack() as stack:
        server = stack.enter_context(ExactServer(web.prefix))
        tacho = stack.enter_context(Tacho(config("none")))
        wait_until(lambda: tacho.scrape().target_of(web.path), 5, "the container is a target")
        name = tacho.scrape().target_of(web.path)
        exact(server.address, 3)
        assert counted(tacho, name) == (3, 0)
        for who, wanted in (("node", (3, 5)), ("none", (8, 5))):
            tacho.configure(config(who))
            assert tacho.reload() == 200
            exact(server.address, 5)
            assert counted(tacho, name) == wanted
