"""The bill of materials and the notices: of what is in the program, and of nothing else."""

import functools
import re
import shutil
import subprocess

import pytest

from support.inventory import Inventory
from support.paths import BUILD, REPOSITORY, TACHO, require
from support.process import run

CHECK_BASE = REPOSITORY / "deploy/image/check-base"
COLLECT = REPOSITORY / "deploy/image/collect"
DIGEST = "sha256:" + "0123456789abcdef" * 4


@functools.cache
def inventory() -> Inventory:
    found = Inventory(BUILD / "inventory")
    assert found.about["version"] in run([require(TACHO), "--version"])
    return found


def components() -> dict[str, dict]:
    return inventory().components


def linked(how: str) -> set[str]:
    return inventory().linked(how)


def owner(file: str) -> str:
    """The Debian package of a file, without its architecture."""
    real = run(["readlink", "--canonicalize", file]).strip()
    for name in (real, real.removeprefix("/usr")):
        found = subprocess.run(["dpkg-query", "--search", name], capture_output=True, text=True, check=False)
        if found.returncode == 0:
            return found.stdout.partition(":")[0]
    raise ValueError(f"{file} belongs to no package")


def test_every_shared_library_is_listed_and_no_other():
    libraries = re.findall(r"(/\S+) \(0x", run(["ldd", require(TACHO)]))
    assert len(libraries) > 10
    assert linked("shared") == {owner(library) for library in libraries}


def test_versions_are_those_of_the_installed_packages():
    for name in linked("shared"):
        versions = run(["dpkg-query", "--show", "--showformat", "${Version}\n", name]).split()
        assert components()[name]["version"] in versions, name


def test_what_is_compiled_in_is_listed_with_its_notice():
    assert not {"openssl", "glibc", "linux", "prometheus-cpp"} & linked("compiled in")
    assert inventory().notices.startswith((REPOSITORY / "LICENSE").read_text())
    inventory().check_notices()


def test_civetweb_is_the_version_that_was_built():
    pins = (REPOSITORY / "exporter/cmake/Civetweb.cmake").read_text()
    pinned = re.search(r"^set\(civetweb_version (\S+)\)", pins, re.MULTILINE)[1]
    built = components()["civetweb"]["version"]
    # Debian's successor of the pinned one, if the pinned one is not to be had any more.
    assert built == pinned or built > pinned, f"{built} is older than {pinned}"


def test_every_component_can_be_looked_up():
    for name, component in components().items():
        assert component["type"] == "library"
        url = re.fullmatch(r"pkg:deb/debian/(\S+)@(\S+)\?arch=\w+&distro=debian-\d+", component["purl"])
        assert url, component["purl"]
        assert url[1].replace("%2B", "+") == name
        assert url[2].replace("%2B", "+").replace("%3A", ":") == component["version"]
        assert "+" not in component["purl"] and ":" not in url[2]


@pytest.mark.parametrize(
    ("base", "by_digest", "accepted"),
    [
        (f"debian:bookworm-slim@{DIGEST}", "1", True),
        (f"registry.example.org:5000/debian@{DIGEST}", "1", True),
        ("debian:bookworm-slim", "", True),
        ("debian:bookworm-slim", "1", False),
        (f"debian@{DIGEST[:-1]}", "", False),
        (f"debian@{DIGEST.upper()}", "", False),
        (f"debian@{DIGEST} --privileged", "", False),
        ("debian:bookworm-slim", "yes", False),
    ],
)
def test_a_base_is_named_by_digest_where_that_is_asked_for(base, by_digest, accepted):
    checked = subprocess.run([CHECK_BASE, base, by_digest], capture_output=True, text=True, check=False)
    assert (checked.returncode == 0) == accepted
    assert bool(checked.stderr) == ("@" not in base or not accepted), "what is not pinned is said"


def test_an_image_is_not_made_without_them(tmp_path):
    program = shutil.copy("/bin/true", tmp_path)
    collected = subprocess.run([COLLECT, program, tmp_path / "image"], capture_output=True, text=True, check=False)
    assert collected.returncode == 1 and not (tmp_path / "image").exists()
    assert f"no inventory of {program}" in collected.stderr and "--target inventory" in collected.stderr
    run([COLLECT, "--without-inventory", program, tmp_path / "image"])
    assert (tmp_path / "image/usr/bin/true").exists()
