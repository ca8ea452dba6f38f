"""What a kubelet and its runtime leave on a node: cgroups of pods and containers, and links to their logs.

The cgroups are real, below one of the tests' own; no process need run in them.
"""

import dataclasses
import hashlib
import os
import pathlib
import uuid
from collections.abc import Callable

from support.cgroup import Cgroup

NODE = "node-1.example.org"  # what the machine is called

# kubelet: a link's name is cut so that it fits into a file system (pkg/kubelet/kuberuntime/legacy.go).
_LONGEST_LINK = 255 - len(".log")


@dataclasses.dataclass(frozen=True)
class Runtime:
    """Where a container runtime and a cgroup driver put a container: `pod` and `container` make directory names."""

    name: str  # as tacho calls it; empty where the path does not tell
    parent: str
    pod: Callable[["Pod"], str]
    container: Callable[[str, "Pod"], str]
    inner: str = ""  # made by the runtime inside the container
    monitor: Callable[[str], str] | None = None


def _slice(pod: "Pod") -> str:
    quality = "" if pod.quality == "guaranteed" else f"-{pod.quality}"
    uid = pod.uid.replace("-", "_")
    return f"kubepods{quality and quality + '.slice/kubepods' + quality}-pod{uid}.slice"


def _directory(pod: "Pod") -> str:
    return f"{'' if pod.quality == 'guaranteed' else pod.quality + '/'}pod{pod.uid}"


RUNTIMES = {
    "containerd, systemd": Runtime("containerd", "kubepods.slice", _slice, lambda id, _: f"cri-containerd-{id}.scope"),
    "containerd, cgroupfs": Runtime("", "kubepods", _directory, lambda id, _: id),
    "CRI-O, systemd": Runtime("cri-o", "kubepods.slice", _slice, lambda id, _: f"crio-{id}.scope", "container",
                              lambda id: f"crio-conmon-{id}.scope"),
    "CRI-O, cgroupfs": Runtime("cri-o", "kubepods", _directory, lambda id, _: f"crio-{id}", "",
                               lambda id: f"crio-conmon-{id}"),
    "containerd, kubelet of the other driver": Runtime(
        "containerd", "system.slice/containerd.service", lambda _: "",
        lambda id, pod: f"{_slice(pod).rpartition('/')[2]}:cri-containerd:{id}",
    ),
    "kind": Runtime("containerd", "docker/" + "d" * 64 + "/kubelet.slice/kubelet-kubepods.slice",
                    lambda pod: "/".join(f"kubelet-{part}" for part in _slice(pod).split("/")),
                    lambda id, _: f"cri-containerd-{id}.scope"),
}  # fmt: skip


def _id_of(*words: str) -> str:
    """An id of this run's own: the nodes of two tests at a time must not have a container in common."""
    return hashlib.sha256("/".join([str(os.getpid()), *words]).encode()).hexdigest()


@dataclasses.dataclass
class Pod:
    """`containers` have names and logs, init containers too; beside them there is a pause container without."""

    namespace: str
    name: str
    containers: list[str]
    quality: str = "burstable"
    static: bool = False
    uid: str = ""
    workload: tuple[str, str] = ("", "")  # name and kind, as they are to be read from the pod's name

    def __post_init__(self):
        self.uid = self.uid or str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.namespace}/{self.name}"))
        if self.static:
            self.uid = self.uid.replace("-", "")  # the hash of its manifest

    def id_of(self, container: str, attempt: int = 0) -> str:
        return _id_of(self.uid, container, str(attempt))


class Node:
    """The cgroups below `root` and a directory that takes the place of /var/log."""

    def __init__(self, root: Cgroup, log: pathlib.Path, runtime: Runtime):
        self.root, self.log, self.runtime = root, log, runtime
        (log / "containers").mkdir(parents=True, exist_ok=True)

    def path_of(self, pod: Pod, container: str, attempt: int = 0) -> str:
        """Of a container's cgroup, below the v2 root."""
        parts = [self.root.path, self.runtime.parent, self.runtime.pod(pod),
                 self.runtime.container(pod.id_of(container, attempt), pod)]  # fmt: skip
        return "/".join(part for part in parts if part)

    def directory(self, path: str) -> pathlib.Path:
        return self.root.mount / path.lstrip("/")

    def add(self, pod: Pod) -> None:
        """The pause container first, as runtimes do."""
        self.start(pod, "", log=False)
        for name in pod.containers:
            self.start(pod, name)

    def start(self, pod: Pod, container: str, attempt: int = 0, log: bool = True) -> None:
        directory = self.directory(self.path_of(pod, container, attempt))
        (directory / self.runtime.inner).mkdir(parents=True)
        if self.runtime.monitor:
            (directory.parent / self.runtime.monitor(pod.id_of(container, attempt))).mkdir()
        if log:
            self.link_log(pod, container, attempt)

    def link_log(self, pod: Pod, container: str, attempt: int = 0) -> None:
        """As the kubelet does before a container starts; nothing is logged."""
        self._link(pod, container, attempt).symlink_to(
            f"/var/log/pods/{pod.namespace}_{pod.name}_{pod.uid}/{container}/{attempt}.log"
        )

    def stop(self, pod: Pod, container: str, attempt: int = 0) -> None:
        directory = self.directory(self.path_of(pod, container, attempt))
        if self.runtime.inner:
            (directory / self.runtime.inner).rmdir()
        if self.runtime.monitor:
            (directory.parent / self.runtime.monitor(pod.id_of(container, attempt))).rmdir()
        directory.rmdir()
        self._link(pod, container, attempt).unlink(missing_ok=True)

    def remove(self, pod: Pod) -> None:
        for name in [*pod.containers, ""]:
            self.stop(pod, name)
        if directory := self.runtime.pod(pod):
            self.directory(f"{self.root.path}/{self.runtime.parent}/{directory}").rmdir()

    def labels_of(self, pod: Pod, container: str, attempt: int = 0) -> dict[str, str]:
        """What tacho_target_info should say of it: no label without a value."""
        workload, kind = pod.workload
        labels = {
            "namespace": pod.namespace, "pod": pod.name, "container": container,
            "container_id": pod.id_of(container, attempt), "pod_uid": pod.uid, "runtime": self.runtime.name,
            "cgroup": self.path_of(pod, container, attempt), "workload": workload or pod.name,
            "workload_kind": kind or "Pod", "node": NODE,
        }  # fmt: skip
        return {name: value for name, value in labels.items() if value}

    def _link(self, pod: Pod, container: str, attempt: int) -> pathlib.Path:
        name = f"{pod.name}_{pod.namespace}_{container}-{pod.id_of(container, attempt)}"
        return self.log / "containers" / f"{name[:_LONGEST_LINK]}.log"
