"""Servers for a guest: their programs, Python's library, a database that is ready, as an archive of its file system."""

import pathlib
import shutil
import subprocess
import tempfile

from matrix.bundle import GUEST, copy_program, cpio, libraries
from support import paths
from support.apt import Unavailable
from support.servers.postgres import postgres_programs

PYTHON = pathlib.Path("/usr/lib/python3.11")
PACKAGES = pathlib.Path("/usr/lib/python3/dist-packages")
# What no server imports, and what is large.
LEFT_OUT = shutil.ignore_patterns("__pycache__", "test", "tests", "idlelib", "ensurepip", "tkinter", "lib2to3", "pydoc_data", "config-3*")
PROGRAMS = {"nginx": ["nginx"], "redis": ["redis-server"], "memcached": ["memcached"], "postgres": ["setpriv"], "gunicorn": [], "grpc": []}
OF_PYTHON = {"gunicorn": ("gunicorn", "pkg_resources", "setuptools"), "grpc": ("grpc",)}


def add_libraries(tree: pathlib.Path, program: pathlib.Path) -> None:
    for inside, library in libraries(program).items():
        place = tree / str(inside).lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            shutil.copy(library, place)


def add_program(tree: pathlib.Path, program: pathlib.Path, place: pathlib.Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    copy_program(program, place, "strip")
    add_libraries(tree, program)


def add_postgres(tree: pathlib.Path) -> None:
    programs = postgres_programs()
    version = programs.parent.name
    add_program(tree, programs / "postgres", tree / str(programs).lstrip("/") / "postgres")
    shutil.copytree(f"/usr/share/postgresql/{version}", tree / f"usr/share/postgresql/{version}", ignore=shutil.ignore_patterns("man", "*.sample"))
    with tempfile.TemporaryDirectory(prefix="tacho-postgres-") as directory:
        shutil.chown(directory, "nobody", "nogroup")
        data = pathlib.Path(directory) / "data"
        command = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "--locale=C", "--wal-segsize=1"]
        subprocess.run(command, user="nobody", group="nogroup", extra_groups=[], cwd=directory, env={"TZ": "GMT"}, check=True, stdout=subprocess.DEVNULL)
        shutil.copytree(data, tree / "data")


def add_python(tree: pathlib.Path, packages: set[str]) -> None:
    add_program(tree, pathlib.Path("/usr/bin/python3.11"), tree / "usr/bin/python3")
    (tree / "usr/lib").mkdir(parents=True, exist_ok=True)
    shutil.copytree(PYTHON, tree / str(PYTHON).lstrip("/"), ignore=LEFT_OUT)
    for name in packages:
        shutil.copytree(PACKAGES / name, tree / str(PACKAGES / name).lstrip("/"), ignore=LEFT_OUT)
    for library in tree.glob("usr/lib/python3*/**/*.so"):
        add_libraries(tree, library)
    shutil.copytree(paths.REPOSITORY / "tests/support", tree / "tests/support", ignore=shutil.ignore_patterns("__pycache__", "*.cpp", "*.h"))


def archive(servers: list[str], programs: list[pathlib.Path]) -> bytes:
    """`programs` are of the build, and go to /work as the others do."""
    with tempfile.TemporaryDirectory(prefix="tacho-servers-") as directory:
        tree = pathlib.Path(directory)
        (tree / "etc").mkdir()
        (tree / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
        (tree / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
        tools = {name: shutil.which(name) for server in servers for name in PROGRAMS[server]}
        if missing := [name for name, path in tools.items() if not path]:
            raise Unavailable(f"{', '.join(missing)} is missing: deploy/install-deps e2e")
        for program in (*programs, *map(pathlib.Path, tools.values())):
            add_program(tree, program, tree / "work" / program.name)
        if "postgres" in servers:
            add_postgres(tree)
        if packages := {package for server in servers for package in OF_PYTHON.get(server, ())}:
            add_python(tree, packages)
        for name in ("servers.sh", "grpc_client.py"):
            shutil.copy(GUEST / name, tree / "work")
        return cpio(tree)
