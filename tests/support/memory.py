"""A memory cgroup for one process, in whichever hierarchy has the controller."""

import os
import pathlib

from support.cgroup import cgroup2_mount, joining
from support.waiting import wait_until


def why_not() -> str | None:
    """Why there is no memory cgroup to be had here; None if there is."""
    try:
        with MemoryCgroup("probe"):
            return None
    except OSError as error:
        return f"no memory cgroup can be made here: {error}"


class MemoryCgroup:
    """Its limit counts what the kernel keeps for the process, too: maps of BPF programs above all."""

    def __init__(self, name: str):
        v1 = pathlib.Path("/sys/fs/cgroup/memory")
        self.v1 = (v1 / "memory.limit_in_bytes").exists()
        mount = v1 if self.v1 else cgroup2_mount()
        self.directory = mount / f"tacho-test-{os.getpid()}-{name}"
        self.directory.mkdir()
        try:
            self.limit("max")
        except OSError:
            self.directory.rmdir()
            raise

    @property
    def prefix(self) -> list[str]:
        return joining(self.directory)

    def limit(self, size: int | str) -> None:
        if self.v1:
            (self.directory / "memory.limit_in_bytes").write_text("-1" if size == "max" else str(size))
        else:
            (self.directory / "memory.max").write_text(str(size))

    def _number(self, name: str) -> int:
        return int((self.directory / name).read_text())

    def _statistic(self, name: str) -> int:
        for line in (self.directory / "memory.stat").read_text().splitlines():
            if line.startswith(f"{name} "):
                return int(line.split()[1])
        raise KeyError(name)

    @property
    def of_kernel(self) -> int:
        """Bytes that the kernel keeps for its processes now."""
        return self._number("memory.kmem.usage_in_bytes") if self.v1 else self._statistic("kernel")

    @property
    def used(self) -> int:
        return self._number("memory.usage_in_bytes" if self.v1 else "memory.current")

    @property
    def most_used(self) -> int:
        """The most that it used so far; 0 where the kernel does not say (cgroup v2 before Linux 5.19)."""
        name = "memory.max_usage_in_bytes" if self.v1 else "memory.peak"
        return self._number(name) if (self.directory / name).exists() else 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Processes that have ended are taken out of it a moment later.
        wait_until(self._is_gone, 30, f"{self.directory} can be removed")

    def _is_gone(self) -> bool:
        if self.directory.exists():
            self.directory.rmdir()
        return True
