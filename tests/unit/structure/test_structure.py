"""The shape of the sources: the wall around libbpf, which way folders include each other, headers that stand alone,
files that can be read at once. Each list of exceptions is compared both ways, so that it can only get shorter: what
needs no exception any more has to leave it."""

import concurrent.futures
import pathlib
import platform
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
EXPORTER = ROOT / "exporter"
BPF = ROOT / "bpf"

MAX_LINES = 350

PROBES = re.findall(r"^ *PROBE\((\w+),", (EXPORTER / "config" / "probe_list.h").read_text(), re.MULTILINE)

# Who beside exporter/kernel includes headers of libbpf or <linux/bpf.h>, and for what.
LIBBPF_OUTSIDE = {
    # The bytes of an object are in a header of their own, which nobody but the object's owner includes.
    **{f"probes/{probe}.cpp": {f"bpf/{probe}.object.h", f"bpf/{probe}_basic.object.h"} for probe in PROBES},
    "probes/sched.cpp": {"bpf/sched.object.h", "bpf/sched_basic.object.h", "bpf/sched_hash.object.h"},
    "targets/targets_object.cpp": {"bpf/targets.object.h", "bpf/targets_basic.object.h"},
    # Numbers of bpf(2)'s commands, for the list of calls that the collector keeps.
    "process/filters.cpp": {"linux/bpf.h"},
}

# Which folders of exporter/ a folder includes (ARCHITECTURE.md, "Folders"), and which files above all folders. `bpf` is
# what programs and user space share.
DIRECTIONS = {
    "base": set(),
    "boundary": {"base"},
    "config": {"base"},
    "kernel": {"base"},
    "metrics": {"base", "bpf"},
    "targets": {"base", "bpf", "config", "kernel"},
    "probes": {"base", "bpf", "config", "kernel", "metrics"},
    "scrape": {"base", "boundary", "bpf", "config", "kernel", "metrics", "probes", "process", "targets"},
    "web": {"base", "config"},
    "page": {"base", "boundary", "bpf", "metrics", "probes", "scrape", "web"},
    "process": {"base", "boundary", "endpoints.h", "stuck_report.h", "web"},
    "top": {"base", "scrape"},
}

# Arrows that are allowed for these files only.
NARROW = {
    ("scrape", "process"): {"process/capabilities.h"},  # a table of names
    ("page", "bpf"): {"bpf/anatomy.h"},
    ("page", "probes"): {"probes/slow_requests.h"},
    ("top", "scrape"): {"scrape/condition_table.h", "scrape/view.h"},  # names of columns and conditions
}

# Headers of bpf/ that do not compile by themselves.
NOT_ALONE = {
    "socket_hooks.bpf.h",  # calls the handlers of socket.bpf.c, which includes it behind them
}

def sources(*patterns: str) -> list[pathlib.Path]:
    found = [path for pattern in patterns for path in ROOT.glob(pattern)]
    assert found, patterns
    return sorted(found)


def exporter_sources() -> list[pathlib.Path]:
    return sources("exporter/**/*.h", "exporter/**/*.cpp")


def includes(path: pathlib.Path, kind: str) -> list[str]:
    """What a file includes by name (kind "q") or from the system ("s")."""
    pattern = r'^\s*#\s*include\s*"([^"]+)"' if kind == "q" else r"^\s*#\s*include\s*<([^>]+)>"
    return re.findall(pattern, path.read_text(), re.MULTILINE)


def folder_of(name: str) -> str:
    return name.split("/")[0]


def test_only_kernel_includes_libbpf():
    outside = {}
    for path in exporter_sources():
        name = str(path.relative_to(EXPORTER))
        bpf = {header for header in includes(path, "s") if header.startswith("bpf/") or header == "linux/bpf.h"}
        if bpf and folder_of(name) != "kernel":
            outside[name] = bpf
    assert outside == LIBBPF_OUTSIDE


def test_folders_include_each_other_in_the_declared_direction():
    found = {path.name: set() for path in EXPORTER.iterdir() if path.is_dir() and list(path.glob("*.h"))}
    found.pop("cmake", None)
    narrow = {arrow: set() for arrow in NARROW}
    for path in exporter_sources():
        name = path.relative_to(EXPORTER)
        if len(name.parts) == 1:
            continue  # main() and what puts the folders together
        folder = name.parts[0]
        for header in includes(path, "q"):
            assert (EXPORTER / header).exists() or (ROOT / header).exists(), f"{name} includes {header} by another path"
            other = folder_of(header)
            if other != folder:
                found[folder].add(other)
            if (folder, other) in narrow:
                narrow[folder, other].add(header)
    assert found == DIRECTIONS
    assert narrow == NARROW


def test_the_declared_directions_have_no_circle():
    left = {folder: {other for other in others if other in DIRECTIONS} for folder, others in DIRECTIONS.items()}
    # A table of names, see NARROW: the folders behind it do not go on from there.
    left["scrape"].discard("process")
    while left:
        leaves = {folder for folder, others in left.items() if not others}
        assert leaves, f"a circle among {sorted(left)}"
        left = {folder: others - leaves for folder, others in left.items() if folder not in leaves}


def compile_alone(header: str) -> str:
    """What clang says of a program that is this header alone."""
    machine = platform.machine()
    done = subprocess.run(
        ["clang-19", "-fsyntax-only", "-target", "bpf", "-mcpu=v3", f"-D__TARGET_ARCH_{'arm64' if machine == 'aarch64' else 'x86'}",
         f"-I{BPF}", "-idirafter", f"/usr/include/{machine}-linux-gnu", "-Wall", "-Wextra", "-Wundef", "-Werror", "-Wno-unused-parameter",
         "-Wno-unused-function", "-x", "c", "-"],
        input=f'#include "{header}"\n', capture_output=True, text=True, timeout=120, check=False)
    return done.stderr if done.returncode else ""


def test_every_bpf_header_compiles_alone():
    headers = [str(path.relative_to(BPF)) for path in sources("bpf/*.h", "bpf/lib/*.h")]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        errors = {header: error for header, error in zip(headers, pool.map(compile_alone, headers), strict=True) if error}
    assert set(errors) == NOT_ALONE, "\n".join(errors[header] for header in set(errors) - NOT_ALONE)


def test_variants_differ_in_one_file_only():
    """Elsewhere a program asks for an ability: with -Wundef one that is not defined is an error."""
    asking = {str(path.relative_to(BPF)) for path in sources("bpf/*.[ch]", "bpf/lib/*.h")
              if re.search(r"TACHO_BASIC|TACHO_TASK_HASH|FULL_VARIANT", path.read_text())}  # fmt: skip
    assert asking == {"lib/compat.bpf.h"}


def test_files_can_be_read_at_once():
    long = {str(path.relative_to(ROOT)) for path in exporter_sources() + sources("bpf/*.[ch]", "bpf/lib/*.h")
            if len(path.read_text().splitlines()) > MAX_LINES}  # fmt: skip
    assert not long
