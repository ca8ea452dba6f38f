"""Rootless engines of a user of the machine: tacho's service counts what their containers answer, and names them as README says."""

import shutil

import pytest

from support import systemd
from support.clients import exact
from support.containers import LIMITS, collect
from support.exposition import Samples
from support.net import exchange
from support.paths import EXACT_SERVER, require
from support.privilege import why_not
from support.process import run
from support.waiting import wait_until

UID = 4711
USER = "tacho-rootless"
HOME = f"/home/{USER}"
RUNTIME = f"/run/user/{UID}"
SOCKET = f"unix://{RUNTIME}/docker.sock"
# What is limited by default is more than this machine gives away, and controllers that nobody has handed down.
PODMAN = f"""[containers]
pids_limit = 0
default_ulimits = {[word for word in LIMITS if "=" in word]}
[engine]
runtime = "runc"
""".replace("'", '"')
DOCKERD = " ".join(
    ["/usr/share/docker.io/contrib/dockerd-rootless.sh", "--iptables=false", "--storage-driver=fuse-overlayfs"]
    + [f"--default-ulimit={word}" for word in LIMITS if "=" in word]
)
# README, "Naming targets".
READS_HOMES = "[Service]\nCapabilityBoundingSet=CAP_DAC_READ_SEARCH\nProtectHome=read-only\n"
NEEDED = ("podman", "dockerd", "rootlesskit", "slirp4netns", "fuse-overlayfs", "newuidmap", "dbus-daemon")


class User:
    """An ordinary user of the machine, with a manager of the user's own as after a log-in."""

    def __init__(self, machine: systemd.Machine):
        self._machine = machine
        machine.write("etc/subuid", f"{USER}:100000:65536\n")
        machine.write("etc/subgid", f"{USER}:100000:65536\n")
        machine.write("etc/containers/containers.conf", PODMAN)
        self.root("useradd", "--uid", str(UID), "--create-home", USER)
        # The devices of this machine, for everybody, in the machine's own mounts.
        for name, major, minor in (("fuse", 10, 229), ("net/tun", 10, 200)):
            node = f"/root/{name.replace('/', '-')}"
            self.root("mknod", "--mode=666", node, "c", str(major), str(minor))
            self.root("mount", "--bind", node, f"/dev/{name}")
        self.root("systemctl", "start", "dbus.socket", "systemd-logind", f"user@{UID}")

    def root(self, *words) -> str:
        status, said = self._machine.command(*words)
        assert status == 0, f"{words}: {said}"
        return said

    def __call__(self, *words) -> str:
        environment = [f"HOME={HOME}", f"XDG_RUNTIME_DIR={RUNTIME}", f"DBUS_SESSION_BUS_ADDRESS=unix:path={RUNTIME}/bus",
                       f"DOCKER_HOST={SOCKET}", "PATH=/usr/sbin:/usr/bin"]  # fmt: skip
        ids = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--init-groups"]
        return self.root("env", "-C", HOME, *ids, "env", *environment, *words)


@pytest.fixture(scope="module")
def machine():
    if reason := why_not() or systemd.why_not():
        pytest.skip(reason)
    missing = [name for name in NEEDED if not shutil.which(name)]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed: deploy/install-deps node")
    with systemd.Machine() as running:
        yield running


@pytest.fixture(scope="module")
def user(machine, tmp_path_factory):
    one = User(machine)
    place = tmp_path_factory.mktemp("image")
    collect(require(EXACT_SERVER), place / "root")
    archive = machine.root / HOME.lstrip("/") / "image.tar"
    run(["tar", "--directory", place / "root", "--create", "--file", archive, "."])
    return one


@pytest.fixture(scope="module")
def docker(user):
    user("systemd-run", "--user", "--unit=docker", "--property=Delegate=yes", "--setenv=PATH=/usr/sbin:/usr/bin", *DOCKERD.split())

    def answers() -> bool:
        return user("sh", "-c", "docker version >/dev/null 2>&1 && echo yes || echo no").strip() == "yes"

    wait_until(answers, 30, "dockerd answers", interval=0.2)
    yield
    user("systemctl", "--user", "stop", "docker")


@pytest.fixture(params=[False, True], ids=["by-id", "by-name"])
def named(machine, request):
    """tacho's service runs as the package has it, or may read homes."""
    drop_in = "etc/systemd/system/tacho.service.d/homes.conf"
    if request.param:
        machine.write(drop_in, READS_HOMES)
        machine.command("systemctl", "daemon-reload")
    status, said = machine.command("systemctl", "start", "tacho")
    assert status == 0, f"{said}\n{machine.journal()}"
    yield request.param
    machine.command("systemctl", "stop", "tacho")
    if request.param:
        machine.command("rm", f"/{drop_in}")
        machine.command("systemctl", "daemon-reload")


def scrape() -> Samples:
    return Samples.parse(exchange("127.0.0.1:9435", "/metrics")[2].decode())


def counts(container_id: str, name: str, runtime: str, ports: list[int], named: bool) -> None:
    """One container is one target, whichever way its requests come."""
    wait_until(lambda: scrape().has("tacho_target_info", container_id=container_id), 10, "the container is a target")
    (about,) = [labels for labels, _ in scrape().all("tacho_target_info") if labels.get("container_id") == container_id]
    assert about["target"] == f"user@{UID}/{name if named else container_id[:12]}", about
    assert (about["user"], about["runtime"], about.get("container")) == (str(UID), runtime, name if named else None)
    for number, port in enumerate(ports, 1):
        exact(f"127.0.0.1:{port}", 101, requests_per_connection=10)
        wait_until(lambda: scrape().sum("tacho_requests_total", target=about["target"]) >= 101 * number, 5, "they are counted")
        assert scrape().sum("tacho_requests_total", target=about["target"]) == 101 * number
    helpers = [labels["target"] for labels, _ in scrape().all("tacho_target_info") if "rootless" in labels["target"]]
    assert helpers == [], "what forwards ports is no server of anybody's"


def test_podman_of_a_user(user, named):
    user("podman", "import", "--quiet", f"{HOME}/image.tar", "exact")
    web = user("podman", "run", "--detach", "--name", "web", "--publish", "127.0.0.1:8096:8095", "exact", "/usr/bin/exact_server",
               "--listen=0.0.0.0:8095").split()[-1]  # fmt: skip
    try:
        counts(web, "web", "podman", [8096], named)
    finally:
        user("podman", "rm", "--force", "--time", "0", "web")


# Without controllers for users Docker leaves the name of the cgroup to runc.
def test_docker_of_a_user(docker, user, named):
    user("docker", "import", f"{HOME}/image.tar", "exact")
    web = user("docker", "run", "--detach", "--name", "web", "--publish", "127.0.0.1:8097:8095", "exact", "/usr/bin/exact_server",
               "--listen=0.0.0.0:8095").split()[-1]  # fmt: skip
    try:
        counts(web, "web", "runc", [8097], named)
    finally:
        user("docker", "rm", "--force", "web")
