"""The two commands of the README on a Debian that has nothing installed: a freshly debootstrapped root.

Takes about ten minutes; left out with TACHO_SKIP_SLOW=1, or when TACHO_DEADLINE (Unix time) is too near.
"""

import os
import pathlib
import signal
import time

import pytest

from support import net
from support.cgroup import cgroup2_mount
from support.exposition import Samples
from support.paths import REPOSITORY
from support.process import Process, run
from support.slow import needs
from support.waiting import wait_until

FRESH_ROOT = REPOSITORY / "tests" / "support" / "fresh-root"
ROOT = REPOSITORY / "build" / "fresh-root" / "root"


@pytest.fixture(scope="module")
def root():
    needs(900, "no Debian from nothing")
    run([FRESH_ROOT, "remove", ROOT])
    try:
        run([FRESH_ROOT, "make", ROOT], timeout=600)
        yield ROOT
    finally:
        run([FRESH_ROOT, "remove", ROOT])


def demo_cgroups() -> list[pathlib.Path]:
    return list(cgroup2_mount().glob("tacho-demo-*"))


def processes_in(root: pathlib.Path) -> list[str]:
    """Command lines of processes whose root directory it is."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "root") == str(root):
                found.append((entry / "cmdline").read_text().replace("\0", " "))
        except OSError:
            pass
    return found


def demo_requests(address: str) -> float:
    samples = Samples.parse(net.exchange(address, "/metrics")[2].decode())
    demo = {labels["target"] for labels, _ in samples.all("tacho_target_info") if "/tacho-demo-" in labels["cgroup"]}
    return sum(samples.sum("tacho_requests_total", target=name) for name in demo)


def test_quickstart_shows_the_demo_and_leaves_nothing(root):
    address = f"127.0.0.1:{net.free_port()}"
    others = set(demo_cgroups())
    command = [FRESH_ROOT, "run", root, "deploy/quickstart", "--demo", "--listen", address, "--for", "10"]
    with Process(command) as quickstart:
        quickstart.wait_for_line("ends in 10 s", timeout=800)
        first = wait_until(lambda: demo_requests(address), 5, "requests of the demo's nginx")
        wait_until(lambda: demo_requests(address) >= first + 200, 5, "more requests of the demo's nginx")
        assert set(demo_cgroups()) - others
        assert quickstart.wait(timeout=30) == 0, quickstart.output
        assert "tacho-demo-" in quickstart.output.partition("requests/s")[2], "the table shows the demo"
    assert set(demo_cgroups()) <= others
    assert processes_in(root) == []
    assert not (root / "usr/sbin/policy-rc.d").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_quickstart_ends_on_signals(root, number):
    address = f"127.0.0.1:{net.free_port()}"
    others = set(demo_cgroups())
    with Process([FRESH_ROOT, "run", root, "deploy/quickstart", "--demo", "--listen", address]) as quickstart:
        quickstart.wait_for_line("Ctrl-C ends it", timeout=120)
        asked = time.monotonic()
        quickstart.signal(number)
        assert quickstart.wait(timeout=30) == 128 + number
        assert time.monotonic() - asked < 10
    assert processes_in(root) == []
    assert set(demo_cgroups()) <= others


def test_quickstart_says_what_is_wrong(root):
    for arguments, message in [
        (["deploy/quickstart", "--frobnicate"], "unknown option --frobnicate"),
        (["deploy/quickstart", "--listen", "nonsense"], "not HOST:PORT"),
        (["deploy/quickstart", "--config", "/no/such/file"], "cannot read /no/such/file"),
    ]:
        ended = Process([FRESH_ROOT, "run", root, *arguments])
        assert ended.wait(timeout=60) != 0
        assert message in ended.output


def test_tests_run(root):
    report = run([FRESH_ROOT, "run", root, "tests/run", "unit"], timeout=1200)
    assert "100% tests passed, 0 tests failed" in report
