"""What tacho is started with, told and shown by others, who may mean no good: descriptors, pipes, names, servers, requests."""

import contextlib
import itertools
import json
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from support import net, paths
from support.cgroup import Cgroup
from support.clients import exact
from support.cpu import cpu_seconds
from support.process import Process
from support.servers import ExactServer
from support.tacho import Tacho, target
from support.waiting import wait_until


def test_one_without_eyes_is_alive_and_not_ready():
    """It can load what it needs, and attach nothing that sees a request."""
    with Tacho({"targets": [], "probes": {"socket": {"attach": "kprobe"}}}, start_timeout=90) as tacho:
        ways = tacho.scrape().all("tacho_probe_attached")
        if any(value for labels, value in ways if (labels["probe"], labels["hook"]) == ("socket", "send")):
            pytest.skip("this kernel has kprobes: everything is attached")
        assert tacho.http("/-/healthy")[0] == 200
        status, _, reason = tacho.http("/-/ready")
        assert status == 503 and b"tacho is not ready: " in reason, reason


def serves(address: str) -> bool:
    with contextlib.suppress(OSError):
        return net.exchange(address, "/-/ready")[0] == 200
    return False


def test_closed_descriptors_are_not_given_to_maps():
    """What is written to 1 and 2 then goes to nobody, not into a map."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = "127.0.0.1:{}".format(free.getsockname()[1])
    closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
    with Process([paths.require(paths.TACHO), f"--web.listen-address={address}"], prefix=closed) as process:
        wait_until(lambda: serves(address), 30, "it serves")
        opened = [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in range(3)]
        assert opened == ["/dev/null"] * 3


def test_a_pipe_in_place_of_the_configuration_stops_nothing(tmp_path):
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    program = paths.require(paths.TACHO)
    for command in ([], ["check"], ["plan"]):
        done = subprocess.run([program, *command, f"--config.file={pipe}"], capture_output=True, text=True, timeout=10)
        assert done.returncode == 2 and "it is no regular file" in done.stderr, done.stderr
    with Tacho({"targets": []}) as tacho:
        tacho.config_file.unlink()
        os.mkfifo(tacho.config_file)
        assert tacho.reload() == 500
        assert tacho.scrape().get("tacho_config_last_reload_successful") == 0
        assert tacho.http("/-/healthy")[0] == 200
        began = time.monotonic()
        tacho.process.signal(signal.SIGTERM)
        tacho.process.wait(timeout=5)
        assert time.monotonic() - began < 3


class Lying:
    """A server that answers each connection with the same bytes, over and over if `endless`, until it is closed."""

    def __init__(self, answer: bytes, endless: bytes = b""):
        self._answer, self._endless = answer, endless
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:{}".format(self._listener.getsockname()[1])
        self.sent = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, contextlib.suppress(OSError):
                    connection.recv(65536)
                    connection.sendall(self._answer)
                    while self._endless:
                        connection.sendall(self._endless)
                        self.sent += len(self._endless)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._listener.close()


def top(url: str) -> subprocess.CompletedProcess:
    command = [paths.require(paths.TACHO), "top", "--once", f"--url={url}"]
    return subprocess.run(command, capture_output=True, timeout=60, check=False)


def test_top_repeats_nothing_of_a_server_that_steers_a_terminal():
    with Lying(b"HTTP/1.1 500 \x1b]0;pwn\x07\x1b[2J\r\n\r\n") as server:
        shown = top(server.url)
    assert shown.returncode == 1 and shown.stderr
    assert not set(shown.stdout + shown.stderr) & (set(range(0x20)) - {0x0A}), shown.stderr


def test_top_does_not_read_an_answer_without_end():
    with Lying(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", endless=b"[" * (1 << 20)) as server:
        shown = top(server.url)
        assert shown.returncode == 1 and b"larger than" in shown.stderr, shown.stderr
        assert server.sent < 128 << 20


def test_a_page_whose_name_was_made_to_lead_here_reads_nothing():
    with Tacho({"targets": []}) as tacho:
        for host, status in [("localhost", 200), ("127.0.0.1:1", 200), ("[::1]", 200), (socket.gethostname(), 200),
                             ("evil.example", 421), ("127.0.0.1.evil.example:9435", 421), ("localhost.evil.example", 421),
                             (socket.gethostname().partition(".")[0] + ".evil.example", 421)]:  # fmt: skip
            for path in ("/metrics", "/targets", "/api/v1/targets", "/"):
                assert tacho.http(path, headers={"Host": host})[0] == status, (host, path)


def test_names_too_long_for_an_event_cost_no_more_than_others(cgroups):
    """Each makes a look at all cgroups due, which is made as seldom as its cost wants it."""
    parent = cgroups("long")
    config = {"targets": [target("l", f"{parent.path}/l*")], "limits": {"max_targets": 600}}

    def cost(tacho: Tacho, above: Cgroup) -> float:
        """CPU seconds a second while cgroups come and go."""
        used, began = cpu_seconds(tacho.pid), time.monotonic()
        while time.monotonic() - began < 3:
            with Cgroup("c", above):
                time.sleep(0.03)
        return (cpu_seconds(tacho.pid) - used) / (time.monotonic() - began)

    with contextlib.ExitStack() as stack:
        for number in range(500):
            stack.enter_context(Cgroup(f"l{number}", parent))
        deep = parent
        for letter in "abc":
            deep = stack.enter_context(Cgroup(letter * 200, deep))
        assert len(deep.path) > 512
        with Tacho(config) as tacho:
            wait_until(lambda: len(tacho.targets()["targets"]) == 500, 20, "all are watched")
            short, long = cost(tacho, parent), cost(tacho, deep)
            # They are found nevertheless.
            made = stack.enter_context(Cgroup("l-late", parent))
            wait_until(lambda: tacho.scrape().target_of(made.path), 20, "a new one is seen")
    print(f"CPU while cgroups come and go: {short:.3f} by short names, {long:.3f} by long ones")
    assert long < short + 0.1


@contextlib.contextmanager
def nothing_to_open(pid: int):
    """The process can open nothing more. A limit below the number of those that poll() is given would stop that, too."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    # What is open at each look is open for good.
    used = set.intersection(*({int(number) for number in os.listdir(f"/proc/{pid}/fd")} for _ in range(50)))
    lowest_free = next(number for number in itertools.count() if number not in used)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (lowest_free, before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


@contextlib.contextmanager
def unmounted(place: pathlib.Path):
    """Cgroups were mounted there, as tacho had been told."""
    subprocess.run(["umount", place], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-t", "cgroup2", "none", place], check=True)


@pytest.mark.parametrize("how", ["no descriptors", "no cgroups are mounted"])
def test_what_cannot_be_read_does_not_count_as_gone(cgroups, agree, tmp_path, how):
    """A look that fails changes nothing: what was known is counted on, the failure is told and counted, and the next look finds more."""
    parent = cgroups("kept")
    subprocess.run(["mount", "-t", "cgroup2", "none", tmp_path], check=True)
    with contextlib.ExitStack() as stack:
        stack.callback(subprocess.run, ["umount", tmp_path], check=True)
        groups = [stack.enter_context(Cgroup(f"k{number}", parent)) for number in range(20)]
        server = stack.enter_context(ExactServer(groups[0].prefix))
        config = {"targets": [target("k", f"{parent.path}/k*")], "limits": {"max_targets": 64}}
        with Tacho(config, flags=[f"--path.cgroupfs={tmp_path}"]) as tacho:
            wait_until(lambda: len(tacho.targets()["targets"]) == 20, 10, "all are watched")
            with nothing_to_open(tacho.pid) if how == "no descriptors" else unmounted(tmp_path):
                deep = parent
                for letter in "abc":  # too long a name for an event: a look at everything is due
                    deep = stack.enter_context(Cgroup(letter * 200, deep))
                line = "Too many open files" if how == "no descriptors" else "no cgroups are mounted there"
                tacho.process.wait_for_line(line + r".*: what was known before is kept", timeout=10)
            wait_until(lambda: tacho.scrape().sum("tacho_discovery_errors_total") >= 1, 5, "the failure is counted")
            assert len(tacho.targets()["targets"]) == 20
            with tacho.watch("k", cgroup=groups[0].path) as change:
                counted = exact(server.address, 211, connections=2)
            agree(f"after a look with {how}", counted, change)
            late = stack.enter_context(Cgroup("k-late", parent))
            tacho.reload(by_signal=True)
            wait_until(lambda: tacho.scrape().target_of(late.path), 10, "the next look finds what is new")


IN_ANOTHER_TIME = """
import ctypes, os, sys
if ctypes.CDLL(None).unshare(0x80) != 0:  # CLONE_NEWTIME
    sys.exit("this kernel has no time namespaces")
with open("/proc/self/timens_offsets", "w") as offsets:
    offsets.write("monotonic 100000 0")
os.execvp(sys.argv[1], sys.argv[1:])
"""


def test_a_clock_that_its_namespace_has_set_changes_no_number(cgroups, agree):
    """Programs have the kernel's clock, and processes that of their namespace: by a day more."""
    if not os.path.exists("/proc/self/ns/time"):
        pytest.skip("this kernel has no time namespaces")
    group = cgroups("time")
    with ExactServer(group.prefix) as server:
        prefix = [sys.executable, "-c", IN_ANOTHER_TIME]
        with Tacho({"targets": [target("time", group.path)]}, prefix=prefix) as tacho:
            if os.readlink(f"/proc/{tacho.pid}/ns/time") == os.readlink("/proc/self/ns/time"):
                pytest.skip("this kernel changes it at a fork only (before Linux 6.3)")
            with tacho.watch("time") as change:
                counted = exact(server.address, 211, connections=2)
            agree("with another clock", counted, change)
            samples = tacho.scrape()
            for family in ("tacho_thread_state_seconds_total", "tacho_idle_seconds_total", "tacho_request_duration_seconds_sum"):
                assert 0 <= samples.sum(family, target="time") < 1000, family


def test_readers_see_whole_plans_while_plans_change(cgroups):
    """Freed memory is overwritten, so that who reads what is being replaced shows it."""
    parent = cgroups("plans")
    names = [f"absent-{number}-{'x' * 100}" for number in range(20)]
    config = {"targets": [target(name, f"/nothing/{name}") for name in names] + [target("p", f"{parent.path}/p*")]}
    seen = {"/targets": 0, "/api/v1/targets": 0}
    faults: list = []
    with Tacho(config, prefix=["env", "MALLOC_PERTURB_=165"], start_timeout=60) as tacho:
        end = threading.Event()

        def read(path: str) -> None:
            while not end.is_set():
                status, _, body = tacho.http(path)
                if status != 200 or set(json.loads(body)["absent"]) - {"p"} != set(names):
                    faults.append((path, status, body[:500]))
                seen[path] += 1

        readers = [threading.Thread(target=read, args=(path,)) for path in seen]
        for reader in readers:
            reader.start()
        began = time.monotonic()
        while time.monotonic() - began < 4:
            with Cgroup("p1", parent):
                time.sleep(0.06)
        end.set()
        for reader in readers:
            reader.join()
        assert "std::" not in tacho.process.output
    assert not faults and min(seen.values()) >= 10, seen
