"""Debian's kernels, downloaded and unpacked but not installed.

The mirror is the one that this machine's apt is configured with (its proxies and credentials apply). A private apt
state reads the signed indices of the other suites, and apt compares every package with them.
"""

import os
import pathlib
import re
import subprocess
import tarfile
from dataclasses import dataclass

from support.paths import REPOSITORY

CACHE = pathlib.Path(os.environ.get("TACHO_KERNEL_CACHE", REPOSITORY / "build" / "kernels"))
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Unavailable(Exception):
    """A kernel cannot be had; the message says why."""


@dataclass(frozen=True)
class Kernel:
    name: str  # as the table shows it
    suite: str  # of Debian
    machine: str = "amd64"  # Debian's name of the architecture
    preemptible: bool = False  # within programs of tracepoints: Linux 7.0 and later

    @property
    def directory(self) -> pathlib.Path:
        return CACHE / f"{self.machine}-{self.suite}"


KERNELS = [
    Kernel("5.10", "bullseye"),
    Kernel("6.1", "bookworm"),
    Kernel("6.12", "trixie"),
    Kernel("sid", "sid", preemptible=True),
    Kernel("6.1", "bookworm", "arm64"),
    Kernel("6.12", "trixie", "arm64"),
]


def mirror() -> str:
    """The first Debian mirror of apt's own configuration."""
    listed = subprocess.run(
        ["apt-get", "indextargets", "--no-release-info", "--format", "$(COMPONENT) $(RELEASE) $(REPO_URI)", "Created-By: Packages"],
        capture_output=True,
        text=True,
        check=False,
    )
    for line in listed.stdout.splitlines():
        component, release, address = line.split()
        if component == "main" and "security" not in release:
            return address
    raise Unavailable("apt has no Debian repository configured (sources.list)")


class PrivateApt:
    """apt with a state of its own that knows one suite of one architecture."""

    def __init__(self, place: pathlib.Path, suite: str, machine: str):
        if not os.path.exists(KEYRING):
            raise Unavailable(f"{KEYRING} is missing: deploy/install-deps build")
        self._place = place
        for directory in ("lists/partial", "archives/partial", "empty"):
            (place / directory).mkdir(parents=True, exist_ok=True)
        (place / "status").touch()
        (place / "sources.list").write_text(f"deb [arch={machine} signed-by={KEYRING}] {mirror()} {suite} main\n")
        settings = {
            "APT::Architecture": machine,
            "APT::Architectures": machine,
            "APT::Sandbox::User": "root",
            "Dir::State": place,
            "Dir::State::lists": place / "lists",
            "Dir::State::status": place / "status",
            "Dir::Cache": place,
            "Dir::Cache::archives": place / "archives",
            "Dir::Etc::sourcelist": place / "sources.list",
            "Dir::Etc::sourceparts": place / "empty",
            "Dir::Etc::preferencesparts": place / "empty",
            "Acquire::Languages": "none",
            "Acquire::Retries": "2",
        }
        (place / "apt.conf").write_text("".join(f'{key} "{value}";\n' for key, value in settings.items()))

    def __call__(self, *command: str) -> str:
        done = subprocess.run(
            command,
            cwd=self._place,
            env={**os.environ, "APT_CONFIG": str(self._place / "apt.conf"), "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise Unavailable(f"{' '.join(command)}: {done.stderr.strip().splitlines()[-1:] or done.returncode}")
        return done.stdout


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
    return images[-1] if images else None


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
        unpack_image(archive, kernel.directory)
        archive.unlink()
    image = unpacked_image(kernel)
    if not image:
        raise Unavailable(f"the packages of {kernel.suite} hold no kernel image")
    return image


def unpack_image(archive: pathlib.Path, directory: pathlib.Path) -> None:
    """Takes vmlinuz out of a package: /boot/vmlinuz-VERSION, or /usr/lib/modules/VERSION/vmlinuz in newer suites."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as unpacker:
        with tarfile.open(fileobj=unpacker.stdout, mode="r|") as tar:
            for member in tar:
                path = pathlib.PurePath(member.name)
                if member.isfile() and path.name.startswith("vmlinuz"):
                    version = path.name.removeprefix("vmlinuz-") if "-" in path.name else path.parent.name
                    (directory / f"vmlinuz-{version}").write_bytes(tar.extractfile(member).read())
