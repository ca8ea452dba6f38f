"""Docker's engine on a node of the tests' own: containerd and dockerd, each in the cgroup of its service, as systemd starts
them. Needs the namespaces of tests/node/inside.

`python3 -m support.engine` fetches the engines that are not installed, for which those namespaces have no network.
"""

import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import socket
import sys
import tempfile

from support.apt import PrivateApt, Unavailable
from support.cgroup import cgroup2_mount, joining
from support.containers import LIMITS
from support.paths import BUILD, REPOSITORY
from support.process import Process, run
from support.waiting import wait_until

CACHE = pathlib.Path(os.environ.get("TACHO_ENGINE_CACHE", REPOSITORY / "build" / "engines"))
PACKAGES = ("docker.io", "docker-cli", "containerd", "docker-buildx", "docker-compose")
# Debian's releases whose engine is tried: the one that is installed, and one that is unpacked from its packages.
INSTALLED = "bookworm"
RELEASES = (INSTALLED, "trixie")
SOCKET = pathlib.Path("/run/docker.sock")


def _root(suite: str) -> pathlib.Path:
    return CACHE / suite / "root"


def is_fetched(suite: str) -> bool:
    complete = CACHE / suite / "complete"
    return complete.exists() and complete.read_text() == " ".join(PACKAGES)


def fetch(suite: str) -> None:
    """Unpacks the packages of another Debian's engine into a directory; runc stays this machine's."""
    place = CACHE / suite / "apt"
    apt = PrivateApt(place, suite, run(["dpkg", "--print-architecture"]).strip())
    apt("apt-get", "update")
    apt("apt-get", "download", *PACKAGES)
    for archive in place.glob("*.deb"):
        run(["dpkg-deb", "--extract", archive, _root(suite)])
        archive.unlink()
    (CACHE / suite / "complete").write_text(" ".join(PACKAGES))


def why_not(release: str) -> str | None:
    """Why that engine cannot run here; None if it can."""
    if not SOCKET.parent.is_mount():
        return "needs namespaces of its own: run it by tests/node/inside"
    if missing := [name for name in ("dockerd", "containerd", "runc", "iptables") if not shutil.which(name)]:
        return f"{', '.join(missing)} is not installed: deploy/install-deps node"
    if release != INSTALLED and not is_fetched(release):
        return f"the engine of {release} is not there: PYTHONPATH=tests /usr/bin/python3 -m support.engine"
    return None


def at_once(do, what) -> list:
    """Four at a time."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return list(pool.map(do, what))


class Service:
    """A program in the cgroup /system.slice/NAME.service."""

    def __init__(self, name: str, argv, environment: dict):
        self.cgroup = cgroup2_mount() / "system.slice" / f"{name}.service"
        self.cgroup.mkdir(parents=True, exist_ok=True)
        # Not left behind by a test that is ended.
        prefix = ["setpriv", "--pdeathsig", "TERM", *joining(self.cgroup)]
        self.process = Process(argv, prefix=prefix, env=environment)

    def stop(self) -> None:
        self.process.stop(timeout=20)
        # Shims of containerd's stay in its cgroup, as with systemd's KillMode=process.
        with contextlib.suppress(OSError):
            self.cgroup.rmdir()


class Engine:
    """Runs until the `with` is left; then its containers, images and data are gone."""

    run_options: list[str] = []

    def __init__(self, release: str):
        self.release = release
        root = None if release == INSTALLED else _root(release)
        directories = ["/usr/local/sbin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        if root:
            directories = [str(root / "usr" / name) for name in ("sbin", "bin")] + directories
        self._containerd_config = (root or pathlib.Path("/")) / "etc/containerd/config.toml"
        self._directory = tempfile.TemporaryDirectory(prefix="tacho-engine-", dir=self._data_directory())
        place = pathlib.Path(self._directory.name)
        self.environment = {"PATH": ":".join(directories), "DOCKER_CONFIG": str(place / "client"), "DOCKER_HOST": ""}
        (place / "client").mkdir()
        if root:
            (place / "client/cli-plugins").symlink_to(root / "usr/libexec/docker/cli-plugins")
        for name in ("docker", "containerd"):
            (place / name).mkdir()
            pathlib.Path("/var/lib", name).mkdir(exist_ok=True)
            run(["mount", "--bind", place / name, f"/var/lib/{name}"])
        self.containerd = self.dockerd = None

    @staticmethod
    def _cgroups() -> list[pathlib.Path]:
        """Of containers, and of the two services where there is a process in them."""
        services = [cgroup2_mount() / "system.slice" / f"{name}.service" for name in ("docker", "containerd")]
        return [*(cgroup2_mount() / "docker").glob("*/"),
                *(place for place in services if place.exists() and (place / "cgroup.procs").read_text())]  # fmt: skip

    @staticmethod
    def _data_directory() -> pathlib.Path:
        """On a real file system: overlays cannot lie on another overlay or in a tmpfs everywhere."""
        directory = BUILD / "tests" / "node"
        directory.mkdir(parents=True, exist_ok=True)
        return directory

    def start_containerd(self) -> None:
        program = shutil.which("containerd", path=self.environment["PATH"])
        self.containerd = Service("containerd", [program, "--config", self._containerd_config], self.environment)
        self.containerd.process.wait_for_line("containerd successfully booted", timeout=20)

    def start_dockerd(self, *options: str) -> None:
        program = shutil.which("dockerd", path=self.environment["PATH"])
        self.dockerd = Service("docker", [
            program, "--containerd", "/run/containerd/containerd.sock", "--exec-opt", "native.cgroupdriver=cgroupfs",
            "--live-restore", *(word.replace("--ulimit", "--default-ulimit") for word in LIMITS), *options,
        ], self.environment)  # fmt: skip
        self.dockerd.process.wait_for_line("API listen on", timeout=30)

    def restart_containerd(self) -> None:
        """Containers run on; dockerd, whose connections it cuts, makes new ones."""
        self.containerd.stop()
        self.start_containerd()
        for container in self.ask("/containers/json"):
            wait_until(lambda id=container["Id"]: self.ask(f"/containers/{id}/top"), 20, "dockerd reaches containerd")

    def restart_dockerd(self) -> None:
        """Containers run on: live-restore."""
        self.dockerd.stop()
        self.start_dockerd()

    def command(self, *arguments) -> list:
        """The words of docker's command."""
        return [shutil.which("docker", path=self.environment["PATH"]), *arguments]

    def cli(self, *arguments, timeout: float = 60) -> str:
        """What docker printed; raises RuntimeError with it when it fails."""
        return run(self.command(*arguments), timeout=timeout, env=self.environment)

    def shell(self, line: str, **options) -> Process:
        """Starts a command line in the repository, as somebody would type it there."""
        return Process(["bash", "-c", line], env=self.environment, cwd=REPOSITORY, **options)

    def build(self, context: pathlib.Path, tag: str, *options, timeout: float = 120) -> str:
        return self.cli("build", *options, "--tag", tag, context, timeout=timeout)

    def remove(self, container: str) -> None:
        """Also one that is gone already."""
        if self.cli("ps", "--all", "--quiet", "--no-trunc", "--filter", f"id={container}"):
            self.cli("rm", "--force", "--volumes", container)

    def inspect(self, name: str) -> dict:
        return self.ask(f"/containers/{name}/json")

    def ask(self, path: str):
        """What the engine's API answers to GET, from JSON; without the time that a client takes to start."""
        connection = http.client.HTTPConnection("docker", timeout=30)
        connection.sock = socket.socket(socket.AF_UNIX)
        with contextlib.closing(connection):
            connection.sock.connect(str(SOCKET))
            connection.request("GET", path)
            answer = connection.getresponse()
            if answer.status != 200:
                raise OSError(f"{path}: {answer.status} {answer.read()!r}")
            return json.load(answer)

    @property
    def version(self) -> str:
        return self.ask("/version")["Version"]

    def __enter__(self):
        if others := self._cgroups():
            raise RuntimeError(f"another engine runs on this machine: {', '.join(map(str, others))}")
        self.start_containerd()
        self.start_dockerd()
        return self

    def __exit__(self, *_):
        if not self.dockerd.process.running:
            self.dockerd.stop()
            self.start_dockerd()
        if containers := self.cli("ps", "--all", "--quiet").split():
            self.cli("rm", "--force", "--volumes", *containers)
        if networks := self.cli("network", "ls", "--quiet", "--filter", "type=custom").split():
            self.cli("network", "rm", *networks)
        self.dockerd.stop()
        self.containerd.stop()
        # Only if something went wrong: shims outlive their containerd, and containers their shims.
        for directory in self._cgroups():
            (directory / "cgroup.kill").write_text("1")
            wait_until(lambda directory=directory: run(["rmdir", directory]) == "", 20, f"{directory} is empty")
        for group in ("docker", "system.slice"):
            with contextlib.suppress(OSError):
                (cgroup2_mount() / group).rmdir()
        for name in ("docker", "containerd"):
            wait_until(lambda name=name: run(["umount", "--recursive", f"/var/lib/{name}"], check=False) == "", 20, f"/var/lib/{name} is free")
        self._directory.cleanup()


if __name__ == "__main__":
    for suite in RELEASES:
        if suite == INSTALLED or is_fetched(suite):
            continue
        try:
            fetch(suite)
        except Unavailable as reason:
            print(f"SKIPPED the engine of {suite} cannot be had: {reason}")
            sys.exit(77)
