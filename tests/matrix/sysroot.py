"""Another architecture's Debian, unpacked into a directory: to link against, and to take a guest's libraries from."""

import os
import pathlib
import re
import subprocess

from matrix.kernels import CACHE
from support.apt import PrivateApt, Unavailable
from support.paths import REPOSITORY

SUITE = "bookworm"
PACKAGES = (
    "libc6-dev libstdc++-12-dev libbpf-dev libelf-dev libyaml-cpp-dev libseccomp-dev libspdlog-dev prometheus-cpp-dev libssl-dev "
    "libcrypt-dev zlib1g-dev liblzma-dev libncurses-dev liburing-dev libcli11-dev libutfcpp-dev "
    "nlohmann-json3-dev catch2 busybox-static redis-server redis-tools util-linux"
).split()


def sysroot(machine: str) -> pathlib.Path:
    """Unpacked at the first call; apt finds what the packages depend on and checks every archive."""
    root = CACHE / f"{machine}-root"
    complete, wanted = root / "complete", " ".join(PACKAGES)
    if complete.exists() and complete.read_text() == wanted:
        return root
    place = CACHE / f"{machine}-packages"
    apt = PrivateApt(place, SUITE, machine)
    apt("apt-get", "update")
    apt("apt-get", "install", "--download-only", "--yes", "--no-install-recommends", *PACKAGES)
    root.mkdir(exist_ok=True)
    for archive in sorted((place / "archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", archive, root], check=True)
        archive.unlink()
    make_links_relative(root)
    complete.write_text(wanted)
    return root


def make_links_relative(root: pathlib.Path) -> None:
    """Absolute links would lead out of the directory."""
    for place, directories, files in os.walk(root):
        for name in directories + files:
            path = pathlib.Path(place, name)
            if path.is_symlink() and os.path.isabs(target := os.readlink(path)):
                path.unlink()
                path.symlink_to(os.path.relpath(root / target.lstrip("/"), place))


def needed(program: pathlib.Path) -> list[str]:
    """Names of the libraries and of the loader that an ELF file asks for."""
    listed = subprocess.run(["readelf", "--dynamic", "--program-headers", program], capture_output=True, text=True, check=True)
    names = re.findall(r"\(NEEDED\).*\[(.*)\]", listed.stdout)
    return names + [pathlib.Path(path).name for path in re.findall(r"program interpreter: (\S+)\]", listed.stdout)]


def libraries(root: pathlib.Path, program: pathlib.Path) -> dict[pathlib.Path, pathlib.Path]:
    """What the program needs from the sysroot, all levels deep: where it is to be → where it is."""
    found: dict[pathlib.Path, pathlib.Path] = {}
    wanted = needed(program)
    while wanted:
        name = wanted.pop()
        places = [root / "lib", *root.glob("lib/*-linux-gnu"), *root.glob("usr/lib/*-linux-gnu")]
        library = next((place / name for place in places if (place / name).exists()), None)
        if library is None:
            raise Unavailable(f"{program.name} needs {name}, which the packages of {SUITE} do not have")
        place = pathlib.Path("/", library.relative_to(root))
        if place not in found:
            found[place] = library
            wanted += needed(library)
    return found


def build(machine: str) -> pathlib.Path:
    """A build of the working tree for the other architecture."""
    root = sysroot(machine)
    directory = REPOSITORY / "build" / machine
    toolchain = pathlib.Path(__file__).resolve().parent / f"{machine}.cmake"
    for command in (
        ["cmake", "-S", REPOSITORY, "-B", directory, "-G", "Ninja", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}",
         f"-DTACHO_SYSROOT={root}", "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DTACHO_WARNINGS_AS_ERRORS=OFF"],
        ["cmake", "--build", directory, "--target", "tacho", "kernel_tests", "exact_server", "exact_client"],
    ):  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return directory
