"""Under small limits tacho works, or ends and says what is missing."""

import contextlib
import pathlib
import re
import resource
import signal
import socket
import subprocess

import pytest

from support import attack, net, paths
from support.cgroup import Cgroup
from support.clients import exact
from support.exposition import Samples
from support.process import Process
from support.servers import ExactServer
from support.slow import slow_but
from support.tacho import Tacho, target
from support.waiting import wait_until

MEBIBYTE = 1 << 20
ENOUGH = {
    "no locked memory": (resource.RLIMIT_MEMLOCK, 0),
    "one process": (resource.RLIMIT_NPROC, 1),
    "a stack of 64 KiB": (resource.RLIMIT_STACK, 64 << 10),
    "200 MiB of addresses": (resource.RLIMIT_AS, 200 * MEBIBYTE),
    "256 descriptors": (resource.RLIMIT_NOFILE, 256),
}


def limited(limit: int, value: int) -> list[str]:
    name = {resource.RLIMIT_MEMLOCK: "memlock", resource.RLIMIT_NPROC: "nproc", resource.RLIMIT_STACK: "stack",
            resource.RLIMIT_AS: "as", resource.RLIMIT_NOFILE: "nofile"}[limit]  # fmt: skip
    hard = "" if limit == resource.RLIMIT_NPROC else value  # the processes that serve raise the soft one
    return ["prlimit", f"--{name}={value}:{hard}"]


@pytest.mark.parametrize("what", ENOUGH)
def test_it_counts_under_limits_that_suffice(cgroups, agree, what):
    group = cgroups("small")
    with ExactServer(group.prefix) as server:
        with Tacho({"targets": [target("small", group.path)]}, prefix=limited(*ENOUGH[what])) as tacho:
            with tacho.watch("small") as change:
                counted = exact(server.address, 211, connections=2)
            agree(f"under {what}", counted, change)


def test_the_soft_limit_of_descriptors_is_raised(cgroups):
    """256 are too few for so many targets at once, and fewer than the system lets it have."""
    parent = cgroups("raised")
    config = {"targets": [target("r", f"{parent.path}/r*")], "limits": {"max_targets": 200}}
    with contextlib.ExitStack() as stack, Tacho(config, prefix=["prlimit", "--nofile=256:4096"]) as tacho:
        limits = pathlib.Path(f"/proc/{tacho.pid}/limits").read_text()
        assert re.search(r"^Max open files +4096 +4096 ", limits, re.MULTILINE), limits
        for number in range(200):
            stack.enter_context(Cgroup(f"r{number}", parent))
        wait_until(lambda: tacho.scrape().get("tacho_targets") == 200, 20, "all are watched")
        assert tacho.scrape().get("tacho_targets_failed_total") == 0


def test_connections_take_no_descriptor_that_a_page_needs():
    """More of them than there are descriptors, from as many sources: a page comes to the process that serves as one."""
    with Tacho({"targets": []}, prefix=limited(*ENOUGH["256 descriptors"])) as tacho:
        with contextlib.ExitStack() as stack:
            for number in range(400):
                silent = stack.enter_context(socket.socket())
                silent.setblocking(False)
                silent.bind((f"127.0.1.{1 + number % 200}", 0))
                silent.connect_ex(("127.0.0.1", tacho.port))
            wait_until(lambda: tacho.next_scrape().get("tacho_web_connections_lost_total", reason="crowded_out") > 100, 10, "there is no room for all")
            for _ in range(8):
                assert attack.scrape(tacho.port)[0] == 200


@pytest.mark.parametrize("descriptors", slow_but([20, 48], [16, 20, 32, 48], "fewer and more descriptors"))
def test_too_few_descriptors_are_named(descriptors):
    with Process([paths.TACHO, "--web.listen-address=127.0.0.1:0"], prefix=limited(resource.RLIMIT_NOFILE, descriptors)) as tacho:
        assert tacho.wait(timeout=30) == 1
        assert "Too many open files" in tacho.output


@pytest.mark.parametrize("descriptors", slow_but([100], [64, 80, 100, 128, 140], "numbers between too few and enough"))
def test_who_starts_without_enough_descriptors_is_not_ready(descriptors):
    """It serves, or it ends: what it lacks it says either way."""
    free = net.free_port()
    with Process([paths.TACHO, f"--web.listen-address=127.0.0.1:{free}"], prefix=limited(resource.RLIMIT_NOFILE, descriptors)) as tacho:

        def told() -> bool:
            if not tacho.running:
                return True
            with contextlib.suppress(OSError):
                return net.exchange(f"127.0.0.1:{free}", "/-/ready")[0] == 503
            return False

        wait_until(told, 40, "it says that it is not ready, or has ended")
        assert "Too many open files" in tacho.output


@pytest.mark.parametrize("mebibytes", [40, 55, 70])
def test_too_little_memory_ends_it_with_a_reason(mebibytes):
    with Process([paths.TACHO, "--web.listen-address=127.0.0.1:0"], prefix=limited(resource.RLIMIT_AS, mebibytes * MEBIBYTE)) as tacho:
        assert tacho.wait(timeout=30) == 1
        assert "ERROR" in tacho.output


@pytest.mark.parametrize("arguments", [["once"], ["plan"], ["--help"], ["check", f"--config.file={paths.REPOSITORY}/config/tacho.yaml"]], ids=lambda words: words[0])
def test_what_cannot_be_written_is_an_error_that_says_so(arguments):
    with open("/dev/full", "w", encoding="utf-8") as full:
        ended = subprocess.run([paths.TACHO, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert ended.returncode == 1 and "standard output" in ended.stderr


def test_a_log_that_takes_nothing_stops_nothing():
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = "127.0.0.1:{}".format(free.getsockname()[1])
    with Process([paths.TACHO, f"--web.listen-address={address}"], prefix=["sh", "-c", 'exec "$@" 2>/dev/full', "sh"]) as tacho:
        wait_until(lambda: net.exchange(address, "/metrics")[0] == 200, 30, "it serves")
        for _ in range(3):
            tacho.signal(signal.SIGHUP)
        samples = Samples.parse(net.exchange(address, "/metrics")[2].decode())
        assert samples.get("tacho_log_dropped_lines_total") > 0

