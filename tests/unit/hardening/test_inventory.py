"""The bill of materials and the notices: of what is in the program, and of nothing else."""

import functools
import json
import re
import subprocess

import pytest

from support.paths import BUILD, REPOSITORY, TACHO, require
from support.process import run

INVENTORY = BUILD / "inventory"
CHECK_BASE = REPOSITORY / "deploy/image/check-base"
DIGEST = "sha256:" + "0123456789abcdef" * 4


@functools.cache
def components() -> dict[str, dict]:
    found = json.loads((INVENTORY / "tacho.cdx.json").read_text())
    assert (found["bomFormat"], found["specVersion"]) == ("CycloneDX", "1.5")
    assert found["metadata"]["component"]["name"] == "tacho"
    assert found["metadata"]["component"]["version"] in run([require(TACHO), "--version"])
    by_name = {component["name"]: component for component in found["components"]}
    assert len(by_name) == len(found["components"]), "one is there twice"
    return by_name


def linked(how: str) -> set[str]:
    return {name for name, component in components().items()
            if {"name": "tacho:linked", "value": how} in component["properties"]}  # fmt: skip


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
    # Those whose headers the sources name, and that have no library to share.
    assert {"civetweb", "nlohmann-json3", "cli11", "utfcpp"} <= linked("compiled in")
    assert not {"openssl", "glibc", "linux", "prometheus-cpp"} & linked("compiled in")
    notices = (INVENTORY / "copyright").read_text()
    assert notices.startswith((REPOSITORY / "LICENSE").read_text())
    for name in linked("compiled in"):
        assert re.search(rf"^{re.escape(name)} {re.escape(components()[name]['version'])}$", notices, re.MULTILINE), name
    for holder in ("The CivetWeb developers", "Niels Lohmann", "University of Cincinnati", "Nemanja Trifunovic"):
        assert holder in notices, holder


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
