"""Debian's kernels, downloaded and unpacked but not installed."""

import os
import pathlib
import re
import subprocess
import tarfile
from dataclasses import dataclass

from support.apt import PrivateApt, Unavailable
from support.paths import REPOSITORY

CACHE = pathlib.Path(os.environ.get("TACHO_KERNEL_CACHE", REPOSITORY / "build" / "kernels"))


@dataclass(frozen=True)
class Kernel:
    name: str  # as the table shows it
    suite: str  # of Debian
    machine: str = "amd64"  # Debian's name of the architecture
    preemptible: bool = False  # within programs of tracepoints: Linux 7.0 and later
    modules: tuple[str, ...] = ()  # that its guests load, in this order

    @property
    def directory(self) -> pathlib.Path:
        return CACHE / f"{self.machine}-{self.suite}"


# TLS in the kernel, and the cipher that the tests use.
KERNEL_TLS = ("gf128mul", "ghash-generic", "ctr", "gcm", "tls")

KERNELS = [
    Kernel("5.10", "bullseye"),
    Kernel("6.1", "bookworm", modules=KERNEL_TLS),
    Kernel("6.12", "trixie"),
    Kernel("sid", "sid", preemptible=True),
    Kernel("6.1", "bookworm", "arm64"),
    Kernel("6.12", "trixie", "arm64"),
]


def image_packages(apt: PrivateApt, machine: str) -> list[str]:
    """The packages that hold the image which the metapackage of the suite points to; newer suites have it apart."""
    wanted, packages = [f"linux-image-{machine}"], []
    while wanted:
        package = wanted.pop()
        packages.append(package)
        depends = apt("apt-cache", "depends", "--no-recommends", "--no-suggests", "--important", package)
        for name in re.findall(r"^\s+Depends: (linux-(?:image|binary)-\S+)$", depends, re.MULTILINE):
            if name not in packages and name not in wanted:
                wanted.append(name)
    return packages[1:]


def unpacked_image(kernel: Kernel) -> pathlib.Path | None:
    images = sorted(kernel.directory.glob("vmlinuz-*"))
    return images[-1] if images and all(module.exists() for module in modules(kernel)) else None


def modules(kernel: Kernel) -> list[pathlib.Path]:
    return [kernel.directory / f"{name}.ko" for name in kernel.modules]


def fetch(kernel: Kernel) -> pathlib.Path:
    """The kernel's image; downloaded when the cache does not have it, or when TACHO_KERNEL_UPDATE is set."""
    image = unpacked_image(kernel)
    if image and not os.environ.get("TACHO_KERNEL_UPDATE"):
        return image
    apt = PrivateApt(kernel.directory / "apt", kernel.suite, kernel.machine)
    apt("apt-get", "update")
    for package in image_packages(apt, kernel.machine):
        apt("apt-get", "download", package)
    for archive in (kernel.directory / "apt").glob("*.deb"):
        unpack_image(archive, kernel)
        archive.unlink()
    image = unpacked_image(kernel)
    if not image:
        raise Unavailable(f"the packages of {kernel.suite} hold no kernel image")
    return image


def unpack_image(archive: pathlib.Path, kernel: Kernel) -> None:
    """Takes the modules out of a package, and vmlinuz: /boot/vmlinuz-VERSION, or /usr/lib/modules/VERSION/vmlinuz in newer suites."""
    wanted = {module.name for module in modules(kernel)}
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as unpacker:
        with tarfile.open(fileobj=unpacker.stdout, mode="r|") as tar:
            for member in tar:
                path = pathlib.PurePath(member.name)
                if member.isfile() and path.name.startswith("vmlinuz"):
                    version = path.name.removeprefix("vmlinuz-") if "-" in path.name else path.parent.name
                    (kernel.directory / f"vmlinuz-{version}").write_bytes(tar.extractfile(member).read())
                elif member.isfile() and path.name in wanted:
                    (kernel.directory / path.name).write_bytes(tar.extractfile(member).read())
