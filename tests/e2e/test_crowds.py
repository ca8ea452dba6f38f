"""Thousands of cgroups, processes and ports come and go: scrapes go on, nothing stays, and who is counted is counted."""

import collections
import contextlib
import math
import pathlib
import subprocess
import threading

import pytest

from support.cgroup import Cgroup
from support.clients import exact
from support.footprint import Footprint
from support.net import own_network
from support.process import Process
from support.servers import ExactServer
from support.slow import SKIPPED, slow_but
from support.tacho import Tacho, target
from support.waiting import wait_until

PROGRAM = pathlib.Path(__file__).parents[1] / "support" / "crowds.py"
PART = 10 if SKIPPED else 1  # of a crowd's full size the short form has a tenth
REQUESTS = 300
BLOCKS_BEFOREHAND = 4
LEAST_SCRAPES = 4
SCRAPES_OF_EACH = 10 if SKIPPED else 100
MOST_PORTS = 16_384  # that the socket probe knows: max_entries of listening_ports


class Beside:
    """Does something again and again, beside what the block of `with` does: `_step`, `PAUSE` seconds after the one before."""

    def __init__(self):
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._stop.wait(self.PAUSE):
            self._step()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


class Reader(Beside):
    """Scrapes four times a second on connections of its own; `times` is how long each took, in seconds."""

    PAUSE = 0.25

    def __init__(self, tacho):
        self._tacho = tacho
        super().__init__()
        self.times, self.failed = [], []

    @property
    def made(self) -> int:
        return len(self.times)

    @property
    def slowest(self) -> float:
        return max(self.times)

    def percentile(self, percent: int) -> float:
        return sorted(self.times)[math.ceil(self.made * percent / 100) - 1]

    @property
    def summary(self) -> str:
        return ", ".join(f"p{percent} {1000 * self.percentile(percent):.0f} ms" for percent in (50, 99))

    def more(self, count: int) -> None:
        """Waits until it has made so many more."""
        wanted = self.made + count
        wait_until(lambda: self.made >= wanted or self.failed, 10 * count, f"{count} scrapes")

    def _step(self):
        try:
            self.times.append(self._tacho.timed_text()[1])
        except OSError as error:
            self.failed.append(error)


class Waiting(Beside):
    """Looks thousands of times a second at what a thread of tacho does while it has something to do."""

    PAUSE = 0.0002

    def __init__(self, tacho, thread: str):
        tasks = pathlib.Path(f"/proc/{tacho.pid}/task").iterdir()
        (self._task,) = (task for task in tasks if (task / "comm").read_text().strip() == thread)
        super().__init__()
        self._seen = collections.Counter()

    @property
    def for_others(self) -> float:
        """The share of its time that it stood at a lock, the rest of which it ran or could have run."""
        print(dict(self._seen))
        assert self._seen["runs"] >= 100
        return self._seen["lock"] / (self._seen["lock"] + self._seen["runs"])

    def _step(self):
        if (self._task / "stat").read_text().rpartition(")")[2].split()[0] == "R":
            self._seen["runs"] += 1
        else:
            function = (self._task / "wchan").read_text()
            self._seen["lock" if "futex" in function else function] += 1


def crowd(*arguments, prefix=()) -> Process:
    return Process(["/usr/bin/python3", "-B", PROGRAM, *arguments], prefix=prefix, stdin=subprocess.PIPE)


def disperse(made: Process) -> None:
    """Waits until it is over."""
    made.close_stdin()
    made.wait_for_line("in .* s", timeout=300)


def check_reader(reader: Reader, what: str) -> None:
    print(f"{what}: {reader.made} scrapes, the slowest took {reader.slowest * 1000:.0f} ms")
    assert reader.made >= LEAST_SCRAPES and not reader.failed
    assert reader.slowest <= 1


def served(tacho, name: str, parent: Cgroup, prefix=()) -> None:
    """A server that is made now is counted exactly."""
    with Cgroup(name, parent) as group, ExactServer([*group.prefix, *prefix]) as server:
        wait_until(lambda: tacho.scrape().target_of(group.path), 10, f"{group.path} is watched")
        network = ["nsenter", f"--net=/proc/{server.pid}/ns/net"]
        assert exact(server.address, REQUESTS, connections=3, prefix=network).requests == REQUESTS
        wait_until(lambda: tacho.scrape().sum("tacho_requests_total", cgroup=group.path) == REQUESTS, 10, "its requests")


def losses(tacho) -> dict:
    return {str(labels): value for labels, value in tacho.scrape().all("tacho_lost_events_total")
            if value and labels["reason"] != "skipped"}  # fmt: skip


def test_cgroups_that_come_and_go_by_the_thousand(cgroups):
    parent = cgroups("many")
    with Tacho({"targets": [target("m", f"{parent.path}/*")]}) as tacho:
        served(tacho, "before", parent)
        # More than are remembered for a while.
        with contextlib.ExitStack() as stack:
            for number in range(40):
                stack.enter_context(Cgroup(f"r{number}", parent))
            wait_until(lambda: tacho.scrape().get("tacho_targets") == 40, 10, "all are watched")
        wait_until(lambda: tacho.scrape().get("tacho_targets") == 0, 30, "no target is left")
        before = Footprint(tacho)
        with Reader(tacho) as reader, crowd("cgroups", 15_000 // PART, 1_000, parent.directory) as made:
            reader.more(LEAST_SCRAPES)
            disperse(made)
        check_reader(reader, made.output)
        wait_until(lambda: tacho.scrape().get("tacho_targets") == 0, 30, "no target is left")
        assert not losses(tacho)
        served(tacho, "after", parent)
        wait_until(lambda: Footprint(tacho).map_entries == before.map_entries, 30, "maps are as before")
        after = Footprint(tacho)
    # Those of the blocks that are made beforehand come a moment later.
    assert after.descriptors.total() - before.descriptors.total() <= BLOCKS_BEFOREHAND
    assert after.written - before.written < 4 << 20


@pytest.mark.parametrize(("kind", "rate"), [("forks", 2_000), ("execs", 1_000), ("threads", 5_000)])
def test_processes_and_threads_by_the_thousand(cgroups, kind, rate):
    """Of a cgroup that is a target; another one is a listener's, a third that of an executable."""
    group = cgroups("crowd")
    with ExactServer() as other:
        config = {"targets": [target("c", group.path), {"name": "l", "process": {"port": other.port}},
                              {"name": "x", "process": {"exe": "/usr/bin/true"}}]}  # fmt: skip
        with Tacho(config) as tacho, ExactServer(group.prefix) as server:
            tacho.wait_for_target("c")
            tacho.wait_for_target("l")
            before = Footprint(tacho)
            with Reader(tacho) as reader, crowd(kind, 6 * rate // PART, rate, prefix=group.prefix) as made:
                for address in (server.address, other.address):
                    assert exact(address, REQUESTS, connections=3).requests == REQUESTS
                reader.more(LEAST_SCRAPES)
                disperse(made)
            check_reader(reader, f"{kind}: {made.output}")
            for name in ("c", "l"):
                wait_until(lambda name=name: tacho.requests(name) == REQUESTS, 5, f"the requests of {name}")
            assert not losses(tacho)
            wait_until(lambda: _grown(before, Footprint(tacho)) == {}, 30, "maps are as before")
            assert Footprint(tacho).descriptors.total() - before.descriptors.total() <= BLOCKS_BEFOREHAND


def test_no_scrape_of_1000_targets_waits_for_those_that_come_and_go(cgroups):
    """300 a second, each there for half a second. Places are limited, so that pages are as long with them as without: those of
    targets that have ended fill up what the others leave.
    """
    parent = cgroups("churn")
    config = {"targets": [target("t", f"{parent.path}/*")], "limits": {"max_targets": 1_300}}
    with contextlib.ExitStack() as stack:
        tacho = stack.enter_context(Tacho(config))
        for number in range(1_000):
            stack.enter_context(Cgroup(f"t{number}", parent))
        with contextlib.ExitStack() as calm_ones:
            for number in range(300):
                calm_ones.enter_context(Cgroup(f"c{number}", parent))
            wait_until(lambda: tacho.scrape().get("tacho_targets") == 1_300, 30, "all are watched")
            with Reader(tacho) as calm:
                calm.more(SCRAPES_OF_EACH)

        def came() -> int:
            """Targets among those that come and go, with those that have ended."""
            return sum("/m" in labels.get("cgroup", "") for labels, _ in tacho.scrape().all("tacho_target_info"))

        with crowd("cgroups", 300, 300, parent.directory, 150) as made:
            wait_until(lambda: came() >= 250, 30, "targets come and go")
            with Waiting(tacho, "tacho-page") as page, Reader(tacho) as reader:
                reader.more(SCRAPES_OF_EACH)
            assert came() >= 250
            disperse(made)
        check_reader(reader, f"cgroups that come and go: {made.output}")
        print(f"{calm.summary} without them, {reader.summary} with them")
        # News of so many may not fit into the ring: then discovery looks at everything.
        assert not [loss for loss in losses(tacho) if "'probe': 'targets'" not in loss]
    # They share the CPUs with discovery, and nothing else.
    assert page.for_others <= 0.03
    assert reader.percentile(99) <= calm.percentile(99) + 0.5


def _grown(before: Footprint, after: Footprint) -> dict:
    return {name: entries - before.map_entries[name] for name, entries in after.map_entries.items() if entries > before.map_entries[name]}


@pytest.mark.parametrize("count", slow_but([1_700], [1_700, 17_000], "more ports than the map holds"))
def test_listening_ports_by_the_thousand(cgroups, count):
    """In a network of their own; those of discovery's maps that are full are told, and a new server counts all the same."""
    parent = cgroups("ports")
    with Tacho({"targets": [target("p", f"{parent.path}/*")]}) as tacho, own_network() as network:
        served(tacho, "before", parent, network)
        before = Footprint(tacho)
        with Reader(tacho) as reader, crowd("listeners", count, prefix=network) as many:
            many.wait_for_line("listening", timeout=300)
            served(tacho, "amid", parent, network)
            reader.more(LEAST_SCRAPES)
            known, lost = Footprint(tacho).listening_ports, losses(tacho)
            print(f"{known:.0f} listening ports are known, lost: {lost}")
            assert known >= min(count, MOST_PORTS)
            assert any("map_full" in loss for loss in lost) == (known == MOST_PORTS)
            many.close_stdin()
            many.wait(60)
        check_reader(reader, f"{count} listeners")
        wait_until(lambda: Footprint(tacho).listening_ports <= before.listening_ports, 60, "closed ports are forgotten")


def test_listeners_that_die_at_once(cgroups):
    """More than there are places, each in a cgroup that is a target, and all gone at once."""
    parent = cgroups("dying")
    groups = [Cgroup(f"d{number}", parent) for number in range(400)]
    with Tacho({"targets": [target("d", f"{parent.path}/d*")], "limits": {"max_targets": 256}}) as tacho:
        with crowd("listeners", len(groups), parent.directory) as servers:
            servers.wait_for_line("listening", timeout=120)
            wait_until(lambda: tacho.scrape().get("tacho_targets") >= 256, 20, "all places are taken")
            with Reader(tacho) as reader:
                servers.close_stdin()
                servers.wait(60)
                for group in groups:
                    group.remove()
                wait_until(lambda: tacho.scrape().get("tacho_targets") <= 1, 30, "places are free again")
                reader.more(LEAST_SCRAPES)
        check_reader(reader, f"{len(groups)} that ended")
