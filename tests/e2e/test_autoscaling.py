"""The rules for autoscalers, evaluated by a real Prometheus on tacho's series of real servers, decide how many there are.

Every server has 0.2 CPUs, in a pod as the kubelet lays it out; Kubernetes' autoscaler is replayed (support/hpa.py).
`pytest -s` prints what is measured.
"""

import contextlib
import dataclasses
import time

import pytest
import yaml

from support import autoscaling
from support.cgroup import CpuQuota, joining
from support.clients.open_loop import OpenLoop
from support.hpa import SYNC_SECONDS, Autoscaler
from support.node import RUNTIMES, Node, Pod
from support.paths import REPOSITORY
from support.process import Process
from support.prometheus import Prometheus
from support.servers import Burn
from support.slow import slow
from support.tacho import Tacho
from support.waiting import wait_until

CORES = 0.2
SCRAPE_SECONDS = 5
# What it takes for a whole window of tacho's to be in Prometheus: so often is decided while servers come and go.
TICK_SECONDS = 8
MOST = 3
# In pods that it keeps busy: two are overloaded, three are not.
DEMAND = 2.2
DAEMON_SET = REPOSITORY / "deploy" / "kubernetes" / "base" / "tacho.yaml"


@dataclasses.dataclass
class Replica:
    pod: Pod
    server: Burn
    stack: contextlib.ExitStack
    first_request: float = 0


class Deployment:
    """Replicas of a server, and clients that share its load out evenly."""

    def __init__(self, node: Node, name: str, milliseconds: float):
        self.node, self.name, self.milliseconds = node, name, milliseconds
        self.replicas: list[Replica] = []
        self._started = 0
        self._clients = contextlib.ExitStack()

    @property
    def pods(self) -> list[str]:
        return [replica.pod.name for replica in self.replicas]

    def scale(self, number: int) -> None:
        while len(self.replicas) > number:
            self.replicas.pop().stack.close()
        while len(self.replicas) < number:
            self.replicas.append(self._start())

    def _start(self) -> Replica:
        self._started += 1
        pod = Pod("shop", f"{self.name}-6c5d7f9b-{self._started:05d}", ["server"])
        self.node.add(pod)
        stack = contextlib.ExitStack()
        stack.callback(self._remove, pod)
        path = self.node.path_of(pod, "server")
        quota = stack.enter_context(CpuQuota(path, CORES))
        prefix = [*joining(self.node.directory(path)), *joining(quota.directory)]
        return Replica(pod, stack.enter_context(Burn(prefix)), stack)

    def _remove(self, pod: Pod) -> None:
        def removed() -> bool:
            """An OSError while its last process is on its way out."""
            self.node.remove(pod)
            return True

        wait_until(removed, 10, f"{pod.name} is gone")

    def load(self, pods: float) -> None:
        """Requests at a rate that keeps so many of the replicas busy."""
        self._clients.close()
        rate = pods * CORES * 1000 / self.milliseconds / len(self.replicas)
        for replica in self.replicas if rate else []:
            client = self._clients.enter_context(
                OpenLoop(replica.server.address, "http", f"/{self.milliseconds}", connections=16)
            )
            client.start(rate, 600, seed=1)
            replica.first_request = replica.first_request or time.monotonic()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._clients.close()
        self.scale(0)


@pytest.fixture
def node(cgroups, tmp_path):
    return Node(cgroups("node"), tmp_path / "log", RUNTIMES["containerd, cgroupfs"])


@pytest.fixture
def prometheus(node):
    """Of a tacho with the DaemonSet's configuration, that looks at these pods only."""
    config = yaml.safe_load(DAEMON_SET.read_text()) | {"targets": [{"name": "shop", "container": {"namespace": "shop"}}]}
    del config["discovery"]
    with (
        Tacho(config, flags=[f"--path.log={node.log}", f"--path.lib={node.log}"]) as tacho,
        Prometheus({"tacho": tacho.address}, interval=f"{SCRAPE_SECONDS}s") as made,
    ):
        yield made


class Scaler:
    """The adapter's rule with Kubernetes' autoscaler, KEDA's query beside it; `clock` is the autoscalers' own."""

    def __init__(self, prometheus: Prometheus, deployment: Deployment):
        hpa = autoscaling.hpa()
        hpa["spec"] |= {"minReplicas": 1, "maxReplicas": MOST}
        self.hpa, self.keda = Autoscaler.of(hpa), Autoscaler.of(hpa)
        self.prometheus, self.deployment, self.clock = prometheus, deployment, 0

    def values(self) -> dict[str, float | None]:
        found = self.prometheus.query(autoscaling.adapter_query("shop", self.deployment.pods))
        return dict.fromkeys(self.deployment.pods) | {labels["pod"]: value for labels, value in found}

    def all_within(self, least: float, most: float) -> bool:
        """Whether every pod has a value between these."""
        return all(value is not None and least <= value <= most for value in self.values().values())

    def total(self) -> float | None:
        found = self.prometheus.query(autoscaling.keda_query(self.deployment.name))
        return found[0][1] if found else None

    def decide(self) -> tuple[int, int]:
        """What both come to after one more period of theirs."""
        self.clock += SYNC_SECONDS
        current = len(self.deployment.replicas)
        return self.hpa.by_pods(self.clock, self.values()), self.keda.by_sum(self.clock, current, self.total())


def seconds_until(condition, since: float, timeout: float, what: str) -> float:
    wait_until(condition, timeout, what, interval=0.2)
    return time.monotonic() - since


@pytest.mark.parametrize("milliseconds", [100, pytest.param(1, marks=slow("short requests take as long again"))])
def test_it_grows_under_load_and_shrinks_to_the_minimum_after_it(node, prometheus, milliseconds):
    with Deployment(node, f"burn{milliseconds}", milliseconds) as deployment:
        scaler = Scaler(prometheus, deployment)
        deployment.scale(1)

        wait_until(lambda: scaler.all_within(0, 0.2), 30, "an idle pod has a value, and its start is over", interval=0.2)
        for _ in range(40):
            assert scaler.decide() == (1, 1), f"an idle pod: {scaler.values()}, {scaler.total()}"

        began = time.monotonic()
        deployment.load(DEMAND)
        overloaded = seconds_until(
            lambda: scaler.all_within(0.9, 1), began, 30, f"≥ .9 under overload, {scaler.values()}"
        )
        history, known, full = [1], [], []
        while len(history) < 12 and history[-2:] != [MOST] * 2:
            number, by_keda = scaler.decide()
            history.append(number)
            assert by_keda >= len(deployment.replicas), "KEDA's query does not shrink it under load"
            if number > len(deployment.replicas):
                deployment.scale(number)
                deployment.load(DEMAND)
                fresh = deployment.replicas[-1]
                known.append(seconds_until(
                    lambda: scaler.all_within(0, 1), fresh.first_request, 15, "a new replica has a value"
                ))  # fmt: skip
                if number * 0.95 < DEMAND:
                    full.append(seconds_until(
                        lambda: scaler.all_within(0.9, 1), fresh.first_request, 15 + SCRAPE_SECONDS, "it is overloaded, too"
                    ))  # fmt: skip
            time.sleep(TICK_SECONDS)
        assert max(history) > 2 and history == sorted(history), f"it grows: {history}"
        busy = scaler.values()

        stopped = time.monotonic()
        deployment.load(0)
        quiet = seconds_until(lambda: scaler.all_within(0, 0.1), stopped, 30, "the load is gone")
        periods = 0
        while len(deployment.replicas) > 1 and periods < 200:
            number, _ = scaler.decide()
            periods += 1
            if number < len(deployment.replicas):
                deployment.scale(number)
        assert len(deployment.replicas) == 1, "it shrinks to the minimum"
        assert periods * SYNC_SECONDS >= 600, "not before ten minutes"
        print(
            f"\n{milliseconds} ms of CPU a request at {CORES} CPUs, scraped every {SCRAPE_SECONDS} s: ≥ .9 {overloaded:.0f} s after"
            f" the overload began; a new replica has a value {max(known):.0f} s after its first"
            f" request, ≥ .9 after {max(full):.0f} s; replicas {history},"
            f" then {', '.join(f'{value:.2f}' for value in busy.values())}; < .1 {quiet:.0f} s after the load; one replica"
            f" {periods * SYNC_SECONDS / 60:.0f} min of the autoscaler later"
        )


# No path of the host is seen, as in a container of the pod.
WITHOUT_CGROUPS = ["unshare", "--mount", "sh", "-c", 'umount --recursive --lazy /sys/fs/cgroup && exec "$@"', "sh"]
SIDECAR = REPOSITORY / "deploy" / "kubernetes" / "components" / "sidecar" / "tacho.yaml"


def test_a_sidecars_pod_is_saturated_as_its_server_is(node):
    """It sees no quota's file: the kernel tells. Its pod's pause container is a target, too, and changes nothing."""
    with contextlib.ExitStack() as stack:
        deployment = stack.enter_context(Deployment(node, "side", 100))
        deployment.scale(1)
        pod = deployment.replicas[0].pod
        pause = stack.enter_context(Process(["sleep", "600"], prefix=joining(node.directory(node.path_of(pod, "")))))
        node.start(pod, "tacho")
        stack.callback(lambda: wait_until(lambda: _stopped(node, pod), 10, "the sidecar's cgroup is gone"))
        prefix = [*joining(node.directory(node.path_of(pod, "tacho"))), *WITHOUT_CGROUPS]
        tacho = stack.enter_context(Tacho(SIDECAR.read_text(), prefix=prefix))
        labels = {"namespace": "shop", "pod": pod.name}
        prometheus = stack.enter_context(Prometheus({"shop/tacho": tacho.address}, f"{SCRAPE_SECONDS}s", labels=labels))
        scaler = Scaler(prometheus, deployment)
        wait_until(lambda: scaler.all_within(0, 0.2), 40, "an idle pod has a value", interval=0.2)
        assert scaler.decide() == (1, 1)
        observed = {labels["container_id"] for labels, _ in tacho.scrape().all("tacho_saturation_ratio")}
        assert observed == {pod.id_of(""), pod.id_of("server")} and pause.running
        conditions = {labels["condition"] for labels, _ in tacho.scrape().all("tacho_target_condition")}
        assert not conditions & {"no_poll", "busy_polling"}, "polls are not seen"

        began = time.monotonic()
        deployment.load(DEMAND)
        seconds = seconds_until(lambda: scaler.all_within(0.9, 1), began, 30, "≥ .9 under overload")
        assert scaler.total() >= 0.9
        limit = tacho.scrape().get("tacho_cpu_limit_cores", container_id=pod.id_of("server"))
        assert limit == pytest.approx(CORES, rel=1e-3), "known since its threads have run"
        deployment.load(0)
        print(f"\na sidecar's pod, 100 ms of CPU a request at {CORES} CPUs: ≥ .9 {seconds:.0f} s after the overload began")


def _stopped(node: Node, pod: Pod) -> bool:
    node.stop(pod, "tacho")
    return True
