"""The file system of a guest: programs with their shared libraries, as a cpio archive that the kernel unpacks."""

import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable

GUEST = pathlib.Path(__file__).resolve().parent / "guest"
# Guests force the method of every probe.
PROBE_LIST = pathlib.Path(__file__).resolve().parents[2] / "exporter/config/probe_list.h"


def libraries(program: pathlib.Path) -> dict[pathlib.Path, pathlib.Path]:
    """The shared libraries and the loader that a program of this machine needs: where they are to be → where they are."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return {pathlib.Path(path): pathlib.Path(path) for path in re.findall(r"(/\S+) \(0x", listed)}


def cpio(tree: pathlib.Path) -> bytes:
    names = sorted(str(path.relative_to(tree)) for path in tree.rglob("*"))
    return subprocess.run(
        ["cpio", "--quiet", "--create", "--format=newc", "--owner=+0:+0"],
        cwd=tree,
        input="\n".join(names).encode(),
        stdout=subprocess.PIPE,
        check=True,
    ).stdout


def copy_program(program: pathlib.Path, place: pathlib.Path, strip: str) -> None:
    subprocess.run([strip, "--strip-debug", "-o", place, program], check=True)
    place.chmod(0o755)


def base_archive(busybox: pathlib.Path, programs: list[pathlib.Path], found=libraries, strip: str = "strip") -> bytes:
    """Everything that all guests of an architecture share. `found` tells the libraries of a program."""
    with tempfile.TemporaryDirectory(prefix="tacho-matrix-") as directory:
        tree = pathlib.Path(directory)
        for name in ("bin", "work"):
            (tree / name).mkdir()
        shutil.copy(busybox, tree / "bin" / "busybox")
        for program in [busybox, *programs]:
            if program is not busybox:
                copy_program(program, tree / "work" / program.name, strip)
            for inside, library in found(program).items():
                place = tree / str(inside).lstrip("/")
                place.parent.mkdir(parents=True, exist_ok=True)
                if not place.exists():
                    shutil.copy(library, place)
        shutil.copy(GUEST / "steps.sh", tree / "work")
        shutil.copy(PROBE_LIST, tree / "work")
        shutil.copy(GUEST / "init", tree / "init")
        (tree / "init").chmod(0o755)
        return cpio(tree)


def job_archive(job: str, modules: Iterable[pathlib.Path] = ()) -> bytes:
    """The commands of one boot, and the kernel's modules that it loads; appended to the base."""
    with tempfile.TemporaryDirectory(prefix="tacho-matrix-") as directory:
        tree = pathlib.Path(directory)
        (tree / "job").write_text(job)
        (tree / "modules").mkdir()
        for number, module in enumerate(modules):
            shutil.copy(module, tree / "modules" / f"{number}-{module.name}")
        return cpio(tree)


def pad(archive: bytes) -> bytes:
    """The kernel looks for the next archive at a multiple of four bytes."""
    return archive + b"\0" * (-len(archive) % 4)


def write(path: pathlib.Path, *archives: bytes) -> pathlib.Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        for archive in archives:
            file.write(pad(archive))
    return path
