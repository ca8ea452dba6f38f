"""Programs that Debian 12 does not have: trixie's, which run there, unpacked into the build directory, by their hash."""

import functools
import os
import platform
import shutil
from dataclasses import dataclass

from support.paths import BUILD, REPOSITORY
from support.process import Process, run


class Unavailable(Exception):
    """The program cannot be had; the message says why."""


@dataclass(frozen=True)
class Pinned:
    name: str
    pool: str  # of its package
    package: str
    sha256: str
    path_first: bool = True  # one on the PATH is as good

    @functools.cache
    def path(self) -> str:
        """That of the PATH, or Debian's, brought once."""
        if self.path_first and (found := shutil.which(self.name)):
            return found
        root = BUILD / self.name
        place = root / "usr" / "bin" / self.name
        if not os.access(place, os.X_OK):
            if platform.machine() != "x86_64":
                raise Unavailable(f"no {self.name} on the PATH, and none is pinned for {platform.machine()}")
            words = [self.pool, BUILD / "downloads", f"{self.package}={self.sha256}"]
            fetch = Process([REPOSITORY / "exporter/cmake/fetch-debian", *words])
            if fetch.wait(timeout=120) != 0:
                raise Unavailable(f"no {self.name} on the PATH, and Debian's cannot be fetched: {fetch.output.splitlines()[-1]}")
            run(["dpkg", "-x", BUILD / "downloads" / self.package, root])
        return str(place)


KUSTOMIZE = Pinned(
    "kustomize", "pool/main/k/kustomize", "kustomize_5.6.0+ds-1+b2_amd64.deb",
    "552bbe5563b522685b10f75a9a226bfbee9778fc313b205d595fdbb7e9c70e33",
)  # fmt: skip
# What is on the PATH may be a vendor's, which looks for other versions of itself.
KUBECTL = Pinned(
    "kubectl", "pool/main/k/kubernetes", "kubectl_1.32.3+ds-2_amd64.deb",
    "9825aaf4c14913027aae04af8688e580459f781c829bd5de00cc4dc2cc5a867f", path_first=False,
)  # fmt: skip
