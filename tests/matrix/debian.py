"""The file system of a guest that boots Debian with systemd: this machine's release, made by debootstrap, with the package."""

import os
import pathlib
import shutil

from matrix.bundle import GUEST, PROBE_LIST, copy_program, cpio
from support.apt import Unavailable
from support.paths import BUILD, EXACT_CLIENT, EXACT_SERVER, REPOSITORY, require
from support.process import run

FRESH_ROOT = REPOSITORY / "tests" / "support" / "fresh-root"
# What a guest without network and users does not read.
LEFT_OUT = ("boot", "usr/share/doc", "usr/share/locale", "usr/share/man", "usr/share/info", "var/cache", "var/lib/apt")
# Once everything else of the boot is done.
SERVICE = """[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/bash /work/systemd.sh
StandardInput=null
StandardOutput=tty
StandardError=tty
TTYPath=/dev/console
[Install]
WantedBy=graphical.target
"""


def bring(*words) -> None:
    """What comes from the mirror, or cannot be had."""
    try:
        run(words, timeout=900)
    except RuntimeError as error:
        raise Unavailable(" ".join(str(error).splitlines()[-2:])) from None


def package() -> pathlib.Path:
    run(["cmake", "--build", BUILD, "--target", "package_deb"], timeout=600)
    (found,) = (BUILD / "package").glob("tacho_*.deb")
    return found


def archive(place: pathlib.Path) -> bytes:
    """Made at `place`, which is empty again afterwards."""
    if missing := [name for name in ("debootstrap", "help2man", "busybox") if not shutil.which(name)]:
        raise Unavailable(f"{', '.join(missing)} is missing: deploy/install-deps e2e package matrix")
    built = package()
    run([FRESH_ROOT, "remove", place])
    bring(FRESH_ROOT, "make", place)
    try:
        copy = place / str(built).lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(built, copy)
        bring(FRESH_ROOT, "run", place, "apt-get", "update")
        # A package that cannot be installed is no reason to skip this.
        run([FRESH_ROOT, "run", place, "apt-get", "install", "--yes", "--no-install-recommends", "systemd-sysv", built], timeout=600)
        furnish(place)
        return cpio(place)
    finally:
        run([FRESH_ROOT, "remove", place])


def furnish(root: pathlib.Path) -> None:
    """Adds the tests, and takes away what they do not need."""
    shutil.rmtree(root / str(REPOSITORY).lstrip("/"))
    for name in LEFT_OUT:
        shutil.rmtree(root / name, ignore_errors=True)
    (root / "work/bin").mkdir(parents=True)
    for program in (EXACT_SERVER, EXACT_CLIENT):
        copy_program(pathlib.Path(require(program)), root / "work" / pathlib.Path(program).name, "strip")
    shutil.copy(shutil.which("busybox"), root / "work/bin/busybox")
    for name in ("wget", "usleep"):
        os.symlink("busybox", root / "work/bin" / name)
    for file in (GUEST / "steps.sh", GUEST / "systemd.sh", PROBE_LIST):
        shutil.copy(file, root / "work")
    units = root / "etc/systemd/system"
    (units / "tests.service").write_text(SERVICE)
    (units / "graphical.target.wants").mkdir(parents=True, exist_ok=True)
    os.symlink("/etc/systemd/system/tests.service", units / "graphical.target.wants/tests.service")
    # The verifier takes half a minute under emulation, and as long again for each method that is refused.
    (units / "tacho.service.d").mkdir()
    (units / "tacho.service.d/emulated.conf").write_text("[Service]\nTimeoutStartSec=300s\n")
    # Nobody logs in; the console is the tests'.
    os.symlink("/dev/null", units / "serial-getty@ttyS0.service")
    os.symlink("/dev/null", units / "getty@tty1.service")
    (root / "init").symlink_to("/lib/systemd/systemd")
