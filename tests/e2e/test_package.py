"""The Debian package: installed, upgraded, removed and purged on a Debian that has nothing else, and its unit.

Takes some minutes for a Debian made by debootstrap; left out with TACHO_SKIP_SLOW=1, or when TACHO_DEADLINE (Unix
time) is too near. What the package contains and how the unit is hardened is looked at always.
"""

import gzip
import pathlib
import re
import shutil

import pytest

from support import net
from support.exposition import Samples
from support.paths import BUILD, REPOSITORY
from support.process import Process, run
from support.slow import needs

FRESH_ROOT = REPOSITORY / "tests" / "support" / "fresh-root"
ROOT = REPOSITORY / "build" / "fresh-root" / "package-root"
UNIT = REPOSITORY / "deploy" / "package" / "tacho.service"
README = REPOSITORY / "README.md"


@pytest.fixture(scope="module")
def package() -> pathlib.Path:
    """The package, built from the build under test."""
    if shutil.which("help2man") is None:
        pytest.skip("no package without help2man: deploy/install-deps package")
    run(["cmake", "--build", BUILD, "--target", "package_deb"], timeout=280)
    (found,) = (BUILD / "package").glob("tacho_*.deb")
    return found


@pytest.fixture(scope="module")
def root():
    """A new Debian, to run commands in: root(*command) gives their output."""
    needs(600, "the package is not installed")
    run([FRESH_ROOT, "remove", ROOT])
    try:
        run([FRESH_ROOT, "make", ROOT], timeout=900)
        yield lambda *command, **options: run([FRESH_ROOT, "run", ROOT, *command], timeout=300, **options)
    finally:
        run([FRESH_ROOT, "remove", ROOT])


def test_package_has_what_belongs_to_it(package):
    about = run(["dpkg-deb", "--field", package])
    for needed in ("libbpf1", "liblzma5", "libssl3", "libyaml-cpp0.7", "libstdc++6"):
        assert re.search(rf"^Depends:.*\b{re.escape(needed)}", about, re.MULTILINE), needed
    assert run(["dpkg-deb", "--info", package, "conffiles"]).split() == ["/etc/default/tacho", "/etc/tacho/tacho.yaml"]
    listed = [line.split(maxsplit=5) for line in run(["dpkg-deb", "--contents", package]).splitlines()]
    assert {words[1] for words in listed} == {"root/root"}
    files = {words[5].removeprefix("."): words[0] for words in listed if not words[0].startswith("d")}
    assert files.pop("/usr/bin/tacho") == "-rwxr-xr-x"
    assert set(files.values()) == {"-rw-r--r--"}
    assert set(files) == {
        "/etc/default/tacho", "/etc/tacho/tacho.yaml", "/usr/lib/systemd/system/tacho.service",
        "/usr/share/bash-completion/completions/tacho", "/usr/share/doc/tacho/LIMITS.md", "/usr/share/doc/tacho/METRICS.md",
        "/usr/share/doc/tacho/README.md", "/usr/share/doc/tacho/copyright",
        "/usr/share/doc/tacho/tacho.cdx.json", "/usr/share/man/man8/tacho.8.gz",
        "/usr/share/tacho/kprobes.conf", "/usr/share/tacho/tacho.schema.json",
    }  # fmt: skip
    # A third are BPF objects, compressed each by itself: the dearest two 187 and 229 KB.
    size = package.stat().st_size
    print(f"{size} bytes")
    assert size < 1.75e6


def test_man_page_has_every_flag_and_command(package, tmp_path):
    run(["dpkg-deb", "--extract", package, tmp_path])
    page = gzip.decompress((tmp_path / "usr/share/man/man8/tacho.8.gz").read_bytes()).decode()
    page = re.sub(r"\\&|\\f[BIR]|\\", "", page)  # roff
    help_text = run([tmp_path / "usr/bin/tacho", "--help"])
    words = re.findall(r"^  (?:-h,)?(--[a-z.-]+|[a-z]+) ", help_text, re.MULTILINE)
    assert {"--config.file", "--help", "check", "health"} <= set(words)
    assert [word for word in words if word not in page] == []
    assert "/etc/tacho/tacho.yaml" in page and "SIGHUP" in page


def complete(program: pathlib.Path, *words: str) -> list[str]:
    """What bash would offer for the last word."""
    script = REPOSITORY / "deploy/package/tacho.bash-completion"
    line = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tacho; printf "%s\\n" "${COMPREPLY[@]}"'
    return run(["bash", "-c", line, script, program, *words]).split()


def test_completion_knows_flags_values_and_commands(package, tmp_path):
    run(["dpkg-deb", "--extract", package, tmp_path])
    program = tmp_path / "usr/bin/tacho"
    assert complete(program, "--config") == ["--config.file"]
    assert set(complete(program, "--log.")) == {"--log.level", "--log.format"}
    assert complete(program, "pl") == ["plan"]
    assert complete(program, "--log.level", "=", "w") == ["warn"]
    assert complete(program, "--log.format", "") == ["text", "json"]


def test_unit_is_hardened(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("the unit is not judged: there is no systemd-analyze")
    judged = run(["systemd-analyze", "security", "--offline=true", "--no-pager", UNIT])
    exposure = float(re.search(r"Overall exposure level for tacho.service: ([\d.]+)", judged)[1])
    print(f"systemd-analyze security: {exposure}")
    assert exposure <= float(re.search(r"`systemd-analyze security` rates it ([\d.]+)", README.read_text())[1])
    # What else it grumbles about is not there on this machine: the program and the manual.
    complaints = run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", UNIT], check=False).splitlines()
    assert [line for line in complaints if "/usr/bin/tacho is not executable" not in line] == []


def test_unit_has_what_systemd_does_not_rate():
    assignments = re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE)
    settings = dict(assignments)
    for name in ("LimitNOFILE", "NoExecPaths", "ExecPaths", "PrivateIPC", "RemoveIPC", "WatchdogSec", "Type", "CapabilityBoundingSet"):
        assert [key for key, _ in assignments].count(name) == 1, f"{name}: another line adds to it, or takes it back"
    # Kernels before 5.11 count maps by RLIMIT_MEMLOCK; 1 024 descriptors are those of 223 targets that come at once.
    assert int(settings["LimitNOFILE"]) >= 65_536 and settings["LimitMEMLOCK"] == "infinity"
    # Nothing can be run but the program itself, its libraries, and the kill(1) of a reload.
    assert settings["NoExecPaths"] == "/"
    assert set(settings["ExecPaths"].split()) == {"/usr/bin/tacho", "-/usr/bin/kill", "/usr/lib", "-/usr/lib64"}
    assert settings["PrivateIPC"] == settings["RemoveIPC"] == settings["NoNewPrivileges"] == "yes"
    assert set(settings["CapabilityBoundingSet"].split()) == {"CAP_BPF", "CAP_PERFMON"}
    # Signs of life come every 15 s, by the same protocol as that it serves.
    assert settings["WatchdogSec"] == "30s" and settings["Type"] == "notify"


def test_it_is_started_again_however_often_it_fails():
    """A port that is still taken at boot, a memory limit: five starts within ten seconds would be the last (systemd.unit(5))."""
    unit = UNIT.read_text()
    assert "Restart=on-failure" in unit and "StartLimit" not in unit
    pause = re.search(r"^RestartSec=(\d+)s$", unit, re.MULTILINE)
    assert pause and 5 * int(pause[1]) > 10


def test_install_run_upgrade_remove_purge(package, root):
    copied = ROOT / "root"
    installed = ROOT / "usr/bin/tacho"
    configuration = ROOT / "etc/tacho/tacho.yaml"
    shutil.copy(package, copied / "first.deb")
    newer = copied / "newer"
    run(["dpkg-deb", "--raw-extract", package, newer])
    control = newer / "DEBIAN/control"
    control.write_text(re.sub(r"^Version: .*$", "Version: 99.0", control.read_text(), flags=re.MULTILINE))
    run(["dpkg-deb", "--root-owner-group", "--build", newer, copied / "newer.deb"])

    root("apt-get", "-qq", "update")
    root("apt-get", "-qq", "install", "--yes", "--no-install-recommends", "/root/first.deb")
    assert root("tacho", "--version").startswith("tacho ")
    assert "ok" in root("tacho", "check", "--config.file=/etc/tacho/tacho.yaml")
    wants = ROOT / "etc/systemd/system/multi-user.target.wants/tacho.service"
    assert wants.is_symlink(), "it starts at boot"
    observe(FRESH_ROOT, root)

    configuration.write_text("window: 20s\n")
    root("apt-get", "-qq", "install", "--yes", "--no-install-recommends", "/root/newer.deb")
    assert "99.0" in root("dpkg-query", "--show", "tacho")
    assert configuration.read_text() == "window: 20s\n", "a changed configuration survives"
    assert wants.is_symlink()

    root("apt-get", "-qq", "remove", "--yes", "tacho")
    assert not installed.exists() and configuration.exists()
    root("apt-get", "-qq", "install", "--yes", "--no-install-recommends", "/root/first.deb", "--allow-downgrades")
    assert installed.exists() and wants.is_symlink(), "installed again, it is enabled again"
    root("apt-get", "-qq", "purge", "--yes", "tacho")
    left = [str(place) for name in ("etc", "usr", "var/lib") for place in (ROOT / name).rglob("*tacho*")]
    assert [place for place in left if "/var/lib/dpkg/" not in place] == []


def observe(fresh_root: pathlib.Path, root) -> None:
    """The installed program, with its own configuration, serves a page in which its hooks are attached."""
    address = f"127.0.0.1:{net.free_port()}"
    command = ["tacho", "--config.file=/etc/tacho/tacho.yaml", f"--web.listen-address={address}"]
    with Process([fresh_root, "run", ROOT, *command]) as tacho:
        tacho.wait_for_line("listening on", timeout=30)
        assert root("tacho", "health", f"--web.listen-address={address}") == ""
        samples = Samples.parse(net.exchange(address, "/metrics")[2].decode())
        assert samples.has("tacho_build_info")
        assert all(value == 1 for _, value in samples.all("tacho_probe_attached", probe="socket"))
