"""tacho in a real container, with two capabilities and a read-only root, observes real containers.

The image comes from the build under test; with time for it, also from the whole Dockerfile on a Debian made by
debootstrap. Left out where podman cannot run a container, with the reason.
"""

import contextlib
import json
import pathlib
import re
import shutil
import tempfile

import pytest
import yaml

from support import image, net
from support.containers import Storage, why_not
from support.deployed import ContainerTacho, Nginx, assert_counts
from support.inventory import Inventory
from support.paths import REPOSITORY
from support.process import run
from support.slow import needs
from support.waiting import wait_until

UNIT = REPOSITORY / "deploy" / "package" / "tacho.service"
KEPT = REPOSITORY / "build" / "fresh-root"
CAP_PERFMON, CAP_BPF = 38, 39


def _slow_build(storage: Storage) -> None:
    needs(1800, "the image is not built from sources")
    root = KEPT / "base"
    fresh = REPOSITORY / "tests" / "support" / "fresh-root"
    run([fresh, "remove", root])
    try:
        run([fresh, "make", root], timeout=900)
        storage.import_root(root, "localhost/debian")
    finally:
        run([fresh, "remove", root])
    image.build_from_sources(storage, "localhost/debian", KEPT / "image-ccache")


@pytest.fixture(scope="module", params=["tree", "sources"])
def storage(request):
    """A storage with the images of tacho and nginx."""
    if reason := why_not():
        pytest.skip(reason)
    with Storage() as made, tempfile.TemporaryDirectory() as tacho, tempfile.TemporaryDirectory() as nginx:
        if request.param == "sources":
            _slow_build(made)
        else:
            image.build_from_tree(made, pathlib.Path(tacho))
        image.build_nginx(made, pathlib.Path(nginx), "nginx")
        yield made


@pytest.fixture
def tacho(storage):
    with ContainerTacho(storage) as running:
        yield running


@pytest.fixture
def nginx(storage, tmp_path):
    """nginx(name) starts one; all end with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda name: stack.enter_context(Nginx(storage, name, tmp_path))


def test_image_has_the_program_and_little_else(storage):
    about = storage.image(image.TAG)
    print(f"the image has {about['Size'] / 1e6:.1f} MB")
    assert about["Size"] < 25e6
    assert about["Config"]["Entrypoint"] == ["/usr/bin/tacho"]
    assert about["User"] == "0:0"
    assert about["Healthcheck"]["Test"] == ["CMD", "/usr/bin/tacho", "health"]
    assert about["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert about["Labels"]["org.opencontainers.image.version"] == "test"
    with tempfile.TemporaryDirectory() as directory:
        archive = pathlib.Path(directory) / "image.tar"
        storage.cli("create", "--name", "look", image.TAG)
        storage.cli("export", "--output", archive, "look")
        files = run(["tar", "-tf", archive]).splitlines()
        storage.cli("rm", "look")
        run(["tar", "-xf", archive, "-C", directory, "usr/share/doc/tacho"])
        inventory = Inventory(pathlib.Path(directory) / "usr/share/doc/tacho")
    programs = [name for name in files if re.search(r"(^|/)s?bin/.", name)]
    assert programs == ["usr/bin/tacho"]
    scanned = [name for name in files if name.startswith("var/lib/dpkg/status.d/l")]
    assert any(name.endswith("/libc6") for name in scanned) and any(name.endswith("/libbpf1") for name in scanned)
    assert "usr/share/doc/libbpf1/copyright" in files
    inventory.check_notices()
    assert inventory.linked("shared") == {name.rpartition("/")[2] for name in files if re.match(r"var/lib/dpkg/status\.d/.", name)}


def test_it_keeps_one_of_two_capabilities_and_a_read_only_root(tacho):
    status = dict(
        line.split(":\t", 1) for line in pathlib.Path(f"/proc/{tacho.container.pid}/status").read_text().splitlines()
    )
    assert int(status["CapBnd"], 16) == 1 << CAP_PERFMON | 1 << CAP_BPF
    for kind in ("CapPrm", "CapEff"):
        assert int(status[kind], 16) == 1 << CAP_BPF, kind
    (web,) = [each for each in tacho.targets()["processes"] if each["process"] == "web"]
    assert web["capabilities"] == [] and web["no_new_privileges"] and web["system_calls_filtered"]
    assert status["Uid"].split() == ["0"] * 4
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    root = next(
        line.split() for line in pathlib.Path(f"/proc/{tacho.container.pid}/mountinfo").read_text().splitlines()
        if line.split()[4] == "/"
    )  # fmt: skip
    assert "ro" in root[5].split(",")
    attached = tacho.scrape().all("tacho_probe_attached")
    assert attached and all(value == 1 for _, value in attached), attached


def system_calls_of_the_unit() -> set[str]:
    """What the systemd unit's SystemCallFilter lets through, with its sets spelled out."""
    allowed: set[str] = set()
    for line in UNIT.read_text().splitlines():
        if line.startswith("SystemCallFilter="):
            value = line.partition("=")[2]
            pending, named = value.lstrip("~").split(), set()
            while pending:
                word = pending.pop()
                if not word.startswith("@"):
                    named.add(word)
                    continue
                listed = run(["systemd-analyze", "--no-pager", "syscall-filter", word]).splitlines()[1:]
                pending += [line.strip() for line in listed if line.strip() and not line.strip().startswith("#")]
            allowed = allowed - named if value.startswith("~") else allowed | named
    return allowed


def test_it_serves_with_the_system_calls_of_its_unit(storage, nginx, agree, tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("the unit's system calls are not known: there is no systemd-analyze")
    names = system_calls_of_the_unit()
    assert "bpf" in names and "read" in names and "mount" not in names and "reboot" not in names
    profile = tmp_path / "seccomp.json"
    profile.write_text(json.dumps({
        "defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 1,
        "archMap": json.loads(image.SECCOMP.read_text())["archMap"],
        "syscalls": [{"names": sorted(names), "action": "SCMP_ACT_ALLOW"}],
    }))  # fmt: skip
    server = nginx("web")
    with ContainerTacho(storage, seccomp=profile) as tacho:
        assert_counts(tacho, server, 107, agree)
        assert all(value == 1 for _, value in tacho.scrape().all("tacho_probe_attached"))


def test_container_that_was_there_is_named_and_counted(storage, nginx, agree):
    server = nginx("web")
    with ContainerTacho(storage) as tacho:
        assert_counts(tacho, server, 1009, agree)
        series = tacho.scrape().all("tacho_requests_total", container="web")
        assert [value for _, value in series] == [1009]


def test_container_that_comes_later_is_counted(tacho, nginx, agree):
    first = nginx("first")
    assert_counts(tacho, first, 503, agree)
    assert_counts(tacho, nginx("second"), 307, agree)
    samples = tacho.scrape()
    assert samples.get("tacho_requests_total", container="first") == 503
    assert samples.get("tacho_requests_total", container="second") == 307


def test_without_sight_of_processes_containers_are_counted_too(storage, nginx, agree, tmp_path):
    config = tmp_path / "tacho.yaml"
    names = ("web-1", "web-2")
    config.write_text(yaml.safe_dump({"targets": [{"name": name, "container": {"name": name}} for name in names]}))
    before = nginx("web-1")
    with ContainerTacho(storage, config) as tacho:
        assert_counts(tacho, before, 211, agree)
        assert_counts(tacho, nginx("web-2"), 307, agree)


def test_container_that_restarts_under_its_name_is_one_series(tacho, nginx, agree):
    before = nginx("web")
    assert_counts(tacho, before, 211, agree)
    before.stop()
    after = nginx("web")
    assert after.id != before.id
    assert_counts(tacho, after, 101, agree)

    def infos() -> list[str]:
        return [labels["container_id"] for labels, _ in tacho.scrape().all("tacho_target_info", container="web")]

    wait_until(lambda: infos() == [after.id], 5, "only the new container is known", interval=0.2)
    # Labels are identity: the container that came back goes on counting.
    assert tacho.scrape().get("tacho_requests_total", container="web") == 211 + 101


def test_health_check_tells_a_running_tacho_from_none(tacho):
    status, said = tacho.container.execute("/usr/bin/tacho", "health", f"--web.listen-address={tacho.address}")
    assert status == 0, said
    status, said = tacho.container.execute("/usr/bin/tacho", "health", f"--web.listen-address=127.0.0.1:{net.free_port()}")
    assert status == 1 and "cannot connect" in said
