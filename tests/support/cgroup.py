"""Control groups of the tests' own, below the cgroup v2 mount."""

import contextlib
import itertools
import os
import pathlib

from support.waiting import wait_until

_numbers = itertools.count(1)


def cgroup2_mount(mounts: pathlib.Path = pathlib.Path("/proc/self/mounts")) -> pathlib.Path:
    """Where cgroup v2 is mounted: /sys/fs/cgroup, or below it on a hybrid system."""
    for line in mounts.read_text().splitlines():
        _, place, kind, *_ = line.split()
        if kind == "cgroup2":
            return pathlib.Path(place)
    raise FileNotFoundError("no cgroup v2 hierarchy is mounted")


def joining(directory: pathlib.Path) -> list[str]:
    """Words before a command that make it join the cgroup before it starts, so that nothing of it runs outside."""
    return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(directory / "cgroup.procs")]


class CpuQuota:
    """A quota for a cgroup's processes: of its own, or of its twin in the v1 hierarchy of the controller, as runtimes do.

    What else runs on the machine hardly takes anything of it: its share is as large as can be.
    """

    PERIOD_US = 100_000
    MOST_SHARES = 262_144

    def __init__(self, path: str, cores: float, mounts: pathlib.Path = pathlib.Path("/proc/self/mounts")):
        self._made: list[pathlib.Path] = []
        quota = round(cores * self.PERIOD_US)
        v1 = [line.split() for line in mounts.read_text().splitlines()]
        place = next((pathlib.Path(mount) for _, mount, kind, options, *_ in v1
                      if kind == "cgroup" and "cpu" in options.split(",")), None)  # fmt: skip
        self.directory = (place or cgroup2_mount()) / path.lstrip("/")
        if place is None:
            (self.directory / "cpu.max").write_text(f"{quota} {self.PERIOD_US}")
            return
        for directory in [*reversed(self.directory.relative_to(place).parents), self.directory.relative_to(place)]:
            if not (place / directory).exists():
                (place / directory).mkdir()
                (place / directory / "cpu.shares").write_text(str(self.MOST_SHARES))
                self._made.insert(0, place / directory)
        (self.directory / "cpu.cfs_period_us").write_text(str(self.PERIOD_US))
        (self.directory / "cpu.cfs_quota_us").write_text(str(quota))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for directory in self._made:
            with contextlib.suppress(OSError):  # those above are also others'
                directory.rmdir()


class Cgroup:
    """A new cgroup; leaving the `with` ends what still runs in it and removes it."""

    def __init__(self, name: str, parent: "Cgroup | None" = None):
        self.mount = cgroup2_mount()
        leaf = name if parent else f"tacho-test-{os.getpid()}-{next(_numbers)}-{name}"
        self.path = f"{parent.path if parent else ''}/{leaf}"
        self.directory.mkdir()

    @property
    def directory(self) -> pathlib.Path:
        return self.mount / self.path.lstrip("/")

    @property
    def id(self) -> int:
        """As the kernel's helpers give it: the inode of the directory."""
        return self.directory.stat().st_ino

    @property
    def prefix(self) -> list[str]:
        """Words before a command that make it join."""
        return joining(self.directory)

    def pids(self) -> list[int]:
        return [int(pid) for pid in (self.directory / "cgroup.procs").read_text().split()]

    def remove(self) -> None:
        """Kills the processes that were started in here, and only those, and removes the cgroup with those inside."""
        if not self.directory.exists():
            return
        events = self.directory / "cgroup.events"
        if "populated 0" not in events.read_text():
            (self.directory / "cgroup.kill").write_text("1")
        wait_until(lambda: "populated 0" in events.read_text(), 30, f"processes of {self.path} have ended")
        for directory, _, _ in os.walk(self.directory, topdown=False):
            os.rmdir(directory)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()
