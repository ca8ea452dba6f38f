"""README's commands for podman, as they are written there, of root with a storage of the tests' own in its usual place."""

import os
import pathlib
import shutil
import signal
import tempfile

import pytest

from support import image
from support.clients import exact
from support.containers import LIMITS, Container, Storage
from support.exposition import Samples
from support.net import exchange
from support.paths import REPOSITORY
from support.privilege import why_not
from support.process import Process, run
from support.readme import commands
from support.waiting import wait_until

PRIME = 101
# No raised limits, no systemd that makes cgroups, none of whose controllers are there; all else is podman's own default.
CONFIGURATION = f"""[containers]
pids_limit = 0
default_ulimits = {[word for word in LIMITS if "=" in word]}
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
"""


class UsualStorage(Storage):
    """At /var/lib/containers, where the tests' own lies instead of this machine's."""

    run_options: list[str] = []

    def __init__(self):
        super().__init__()
        place = pathlib.Path(self._directory.name)
        self._place, self.root = [], pathlib.Path("/var/lib/containers/storage")
        (place / "usual").mkdir()
        pathlib.Path("/var/lib/containers").mkdir(exist_ok=True)
        run(["mount", "--bind", place / "usual", "/var/lib/containers"])
        (place / "containers.conf").write_text(CONFIGURATION.replace("'", '"'))
        os.environ["CONTAINERS_CONF"] = str(place / "containers.conf")

    def __exit__(self, *error):
        self.cli("rm", "--all", "--force", "--time", "0")
        self.cli("rmi", "--all", "--force")
        run(["umount", "--recursive", "/var/lib/containers"])
        del os.environ["CONTAINERS_CONF"]
        self._directory.cleanup()


@pytest.fixture(scope="module")
def storage():
    missing = [name for name in ("podman", "buildah", "runc", "iptables") if not shutil.which(name)]
    if reason := why_not() or (f"{', '.join(missing)} is not installed: deploy/install-deps node" if missing else None):
        pytest.skip(reason)
    with UsualStorage() as made, tempfile.TemporaryDirectory() as directory:
        for name, build in (("tacho", image.build_from_tree), ("exact_server", image.build_exact_server)):
            (pathlib.Path(directory) / name).mkdir()
            build(made, pathlib.Path(directory) / name, name)
        yield made


def address_of(storage, id: str) -> str:
    shown = storage.cli("inspect", "--format", "{{.NetworkSettings.IPAddress}}", id)
    return shown.strip().splitlines()[-1] + ":8080"


def scrape() -> Samples:
    return Samples.parse(exchange("localhost:9435", "/metrics")[2].decode())


def counts(container: Container, address: str) -> None:
    wait_until(lambda: scrape().has("tacho_target_info", container_id=container.id), 5, f"{container.name} is a target")
    exact(address, PRIME)
    wait_until(lambda: scrape().sum("tacho_requests_total", container=container.name) == PRIME, 5, "all are counted")


def test_the_command_serves_in_the_foreground_until_ctrl_c(storage):
    (line,) = [line for line in commands("In a container") if line.startswith("podman run ")]
    with Process(["bash", "-c", f"exec {line}"], cwd=REPOSITORY) as podman:
        podman.wait_for_line("listening on", timeout=20)
        with Container(storage, "exact_server", "web", "--listen=0.0.0.0:8080") as web:
            counts(web, address_of(storage, web.id))
        # In a pod, that is in its cgroup; an infra container has devices that runc cannot open everywhere.
        storage.cli("pod", "create", "--name", "shop", "--infra=false")
        with Container(storage, "exact_server", "api", "--listen=0.0.0.0:8080", options=["--pod", "shop"]) as api:
            counts(api, address_of(storage, api.id))
        storage.cli("pod", "rm", "--force", "--time", "0", "shop")
        podman.signal(signal.SIGINT)
        assert podman.wait(timeout=10) == 0
    assert " ERROR " not in podman.output
