"""Pods on containerd, without a kubelet: its cgroups, its links to logs, one network namespace a pod, real shims."""

import pathlib
import re
import subprocess
import tempfile

import yaml

from support.cgroup import Cgroup
from support.clients import Counted, exact
from support.engine import Engine
from support.net import listens_everywhere
from support.node import NODE, RUNTIMES, Node, Pod
from support.paths import REPOSITORY
from support.process import run
from support.tacho import Tacho
from support.waiting import wait_until

KUBERNETES = REPOSITORY / "deploy" / "kubernetes"
NAMESPACE = "k8s.io"  # as CRI calls it
IMAGES = ("tacho", "exact_server", "pause")
# What ctr gives to a container; a manifest drops ALL.
GIVEN = ("CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL "
         "AUDIT_WRITE").split()  # fmt: skip


# ctr cannot leave a namespace out of a container's specification, as CRI does for hostPID.
RUNC_WITHOUT_PID_NAMESPACE = """#!/usr/bin/python3
import json, os, sys
if "create" in sys.argv:
    place = sys.argv[sys.argv.index("--bundle") + 1] + "/config.json"
    with open(place) as file:
        spec = json.load(file)
    spec["linux"]["namespaces"] = [one for one in spec["linux"]["namespaces"] if one["type"] != "pid"]
    with open(place, "w") as file:
        json.dump(spec, file)
os.execvp("runc", ["runc", *sys.argv[1:]])
"""


class PodNode(Node):
    """Below a cgroup of its own, on an engine's containerd; leaving the `with` ends all pods."""

    def __init__(self, engine: Engine):
        super().__init__(Cgroup("node"), pathlib.Path("/var/log"), RUNTIMES["containerd, cgroupfs"])
        self._engine, self._pods, self._number = engine, [], 0
        self._directory = tempfile.TemporaryDirectory(prefix="tacho-pods-")
        self.runc_of_the_host = pathlib.Path(self._directory.name) / "runc"
        self.runc_of_the_host.write_text(RUNC_WITHOUT_PID_NAMESPACE)
        self.runc_of_the_host.chmod(0o755)
        for image in IMAGES:
            with subprocess.Popen(engine.command("save", image), stdout=subprocess.PIPE) as saved:
                subprocess.run([*self._ctr(), "images", "import", "-"], stdin=saved.stdout, check=True,
                               stdout=subprocess.DEVNULL, env=engine.environment)  # fmt: skip

    def _ctr(self) -> list:
        return ["ctr", "--namespace", NAMESPACE]

    def ctr(self, *words) -> str:
        return run([*self._ctr(), *words], env=self._engine.environment)

    def new_pod(self, pod: Pod) -> "RunningPod":
        self._number += 1
        running = RunningPod(self, pod, self._number)
        self._pods.append(running)
        running.start()
        return running

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pod in self._pods:
            pod.end()
        self.root.remove()
        for link in (self.log / "containers").iterdir():
            link.unlink()
        self._directory.cleanup()


class RunningPod:
    """A pod whose pause container runs; containers are started by run()."""

    def __init__(self, node: PodNode, pod: Pod, number: int):
        self.node, self.pod, self._containers = node, pod, []
        self._network, self.address = f"pod{number}", f"10.244.{number}.2"
        self._number = number

    def start(self) -> None:
        """Its network and its pause container."""
        number, link = self._number, f"veth{self._number}"
        for command in (
            f"ip netns add {self._network}",
            f"ip link add {link} type veth peer name eth0 netns {self._network}",
            f"ip address add 10.244.{number}.1/30 dev {link}",
            f"ip link set {link} up",
            f"ip -n {self._network} address add {self.address}/30 dev eth0",
            f"ip -n {self._network} link set eth0 up",
            f"ip -n {self._network} link set lo up",
            f"ip -n {self._network} route add default via 10.244.{number}.1",
        ):
            run(command.split())
        self.run("", "pause")

    def run(self, name: str, image: str, *arguments, options=(), attempt: int = 0) -> str:
        """Starts a container, whose id is returned; the one without a name is the pod's pause container."""
        id = self.pod.id_of(name, attempt)
        if name:
            self.node.link_log(self.pod, name, attempt)
        self.node.ctr(
            # No shares: a hybrid machine's v2 hierarchy has no controllers.
            "run", "--detach", "--null-io", "--cpu-shares=0", "--cgroup", self.node.path_of(self.pod, name, attempt),
            "--with-ns", f"network:/run/netns/{self._network}", *options, f"docker.io/library/{image}:latest", id, *arguments,
        )  # fmt: skip
        self._containers.append(id)
        return id

    def run_as(self, container: dict, volumes: dict[str, pathlib.Path], host_pid: bool, attempt: int = 0) -> str:
        """Starts what a manifest's container says; `volumes` are its pod's, by name."""
        security = container["securityContext"]
        if security["capabilities"]["drop"] != ["ALL"]:
            raise ValueError("the manifest keeps capabilities that nobody listed")
        options = ["--seccomp", *(f"--cap-drop=CAP_{name}" for name in GIVEN),
                   *(f"--cap-add=CAP_{name}" for name in security["capabilities"]["add"])]  # fmt: skip
        if security["readOnlyRootFilesystem"]:
            options.append("--read-only")
        if security["allowPrivilegeEscalation"]:
            options.append("--allow-new-privs")
        if environment := container.get("env"):
            options += [f"--env={one['name']}={self._field(one['valueFrom']['fieldRef']['fieldPath'])}" for one in environment]
        if host_pid:
            options.append(f"--runc-binary={self.node.runc_of_the_host}")
        for mount in container["volumeMounts"]:
            flags = "rbind:ro" if mount.get("readOnly") else "rbind:rw"
            options.append(f"--mount=type=bind,src={volumes[mount['name']]},dst={mount['mountPath']},options={flags}")
        return self.run(container["name"], container["image"], "/usr/bin/tacho", *container["args"], options=options,
                        attempt=attempt)  # fmt: skip

    @staticmethod
    def _field(path: str) -> str:
        """What the kubelet puts in for it."""
        return {"spec.nodeName": NODE}[path]

    def listens(self, port: int) -> bool:
        return listens_everywhere(run(["ip", "netns", "exec", self._network, "cat", "/proc/net/tcp"]), port)

    def remove(self, id: str) -> int:
        """Asks a container to end, removes it; its exit status."""
        listed = self.node.ctr("tasks", "kill", "--signal", "SIGTERM", id)
        wait_until(lambda: re.search(rf"^{id}\s+\d+\s+STOPPED", self.node.ctr("tasks", "list"), re.MULTILINE), 10,
                   f"{id} has ended {listed}", interval=0.1)  # fmt: skip
        status = self.node.ctr("tasks", "delete", id)
        self.node.ctr("containers", "delete", id)
        self._containers.remove(id)
        found = re.search(r"exited with (?:code|status) (\d+)|ExitStatus: (\d+)", status)
        return int(found[1] or found[2]) if found else 0

    def end(self) -> None:
        for id in list(reversed(self._containers)):
            run([*self.node._ctr(), "tasks", "delete", "--force", id], env=self.node._engine.environment, check=False)
            self.node.ctr("containers", "delete", id)
        self._containers.clear()
        run(["ip", "netns", "delete", self._network], check=False)


class PodServer:
    """The exact server as the first container of a pod."""

    def __init__(self, running: RunningPod):
        self.pod = running.pod
        self.name = self.pod.containers[0]
        self.id = running.run(self.name, "exact_server", "/usr/bin/exact_server", "--listen=0.0.0.0:8080")
        self.address = f"{running.address}:8080"
        wait_until(lambda: running.listens(8080), 30, f"{self.name} listens")

    def serve(self, requests: int) -> Counted:
        return exact(self.address, requests)


class PodTacho(Tacho):
    """tacho as a manifest's container in a pod."""

    def __init__(self, running: RunningPod, container: dict, volumes, host_pid: bool, attempt: int = 0):
        self.running, self.address = running, f"{running.address}:9435"
        self.id = running.run_as(container, volumes, host_pid, attempt)
        wait_until(lambda: self.http("/-/ready", timeout=2)[0] == 200, 30, "tacho is ready", interval=0.05)

    def stop(self) -> int:
        status = self.running.remove(self.id)
        self.id = None
        return status

    def __exit__(self, *_):
        if self.id:
            self.stop()


def daemon_set(configuration: pathlib.Path) -> tuple[dict, dict[str, pathlib.Path], bool]:
    """Container, volumes and host PID namespace of the base's DaemonSet; its ConfigMap is a directory."""
    spec = yaml.safe_load((KUBERNETES / "base/daemonset.yaml").read_text())["spec"]["template"]["spec"]
    (configuration / "tacho.yaml").write_text((KUBERNETES / "base/tacho.yaml").read_text())
    volumes = {volume["name"]: pathlib.Path(volume["hostPath"]["path"]) if "hostPath" in volume else configuration
               for volume in spec["volumes"]}  # fmt: skip
    (container,) = spec["containers"]
    return container, volumes, spec["hostPID"]


def sidecar(configuration: pathlib.Path) -> tuple[dict, dict[str, pathlib.Path], bool]:
    """The same of the component that adds tacho to pods."""
    spec = yaml.safe_load((KUBERNETES / "components/sidecar/pods.yaml").read_text())["spec"]["template"]["spec"]
    (configuration / "tacho.yaml").write_text((KUBERNETES / "components/sidecar/tacho.yaml").read_text())
    (container,) = spec["initContainers"]
    return container, {volume["name"]: configuration for volume in spec["volumes"]}, False
