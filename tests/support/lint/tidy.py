"""clang-tidy for the sources of a compile database, skipping what was clean before.

    tidy.py BUILD CACHE [PART…] [--slow]
    tidy.py BUILD CACHE --together FOLDER…

BUILD is a build directory of clang's (preset `clang`), CACHE remembers clean files, PART restricts to files whose path
contains it, or that of a source which is compiled with it as one (TACHO_UNITY: clang-tidy's checks go through all that
is included, so that a library takes little longer than one of its sources). A file is clean before if the same text,
after preprocessing and with its comments, passed the same configuration: any header that it includes is part of it.

With --together all sources below a FOLDER are checked as one, each test in a namespace of its own. Most of clang-tidy's time
goes into what a source includes: 58 sources of kernel tests take 20 seconds of a CPU so, and 5 minutes one by one. A check
whose time grows with the square of the source is left out. --slow: ends with 77 if TACHO_SKIP_SLOW is set.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from support.as_one import FOLDERS, as_one  # noqa: E402

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
TIDY = "clang-tidy-19"
CONFIGURATION = REPOSITORY / ".clang-tidy"
# They cannot be part of another source: what it defines before it includes Catch decides what that is; the test defines
# what a header declares.
ALONE = {"tests/support/run_tests.cpp", "tests/unit/web/auth_test.cpp"}
# It looks for whatever changes a parameter: 250 of 350 s where exporter/ is one source, and 60 of 330 by its libraries.
QUADRATIC = ["performance-unnecessary-value-param"]


def compiled(build: pathlib.Path):
    """(file, the sources that it consists of, compile command, directory) of everything in C++."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["directory"], entry["file"]).resolve()
        included = re.findall(r'#include "(.*\.cpp)"', file.read_text()) if file.is_relative_to(build) else []
        members = [str(REPOSITORY / "tests" / name) for name in included] or [str(file)]
        if file.suffix != ".c":
            yield file, members, shlex.split(entry["command"]), entry["directory"]


def sources(build: pathlib.Path, parts: list[str]):
    """(folder, file, compile command, directory) of our own sources, and of libraries of these; generated and foreign ones are
    elsewhere. What takes longest comes first."""
    found = []
    for file, members, command, directory in compiled(build):
        root = build if file.is_relative_to(build) else REPOSITORY
        folder = next((folder for folder in FOLDERS if file.is_relative_to(root / folder)), None)
        wanted = not parts or any(part in name for part in parts for name in members)
        if folder and wanted:
            found.append((len(members), folder, file, command, directory))
    return [source for _, *source in sorted(found, key=lambda source: -source[0])]


def options(command: list[str]) -> list[str]:
    """What of a compile command another source can be compiled with, too: neither a precompiled header nor an output."""
    kept = []
    for word, before in zip(command, ["", *command]):
        if before == "-isystem":
            kept.append(f"-isystem{word}")
        elif re.match("-I|-D|-std=|-W[a-z]", word):
            kept.append(word)
    return kept


def together(build: pathlib.Path, cache: pathlib.Path, folders: list[str]):
    """As sources() has them: one for each folder, and those that are checked alone. Of a library that is compiled in parts, whose
    names are the same, each part but the first is one, too."""
    for folder in folders:
        groups: dict[str, set[pathlib.Path]] = {}
        kept: dict[str, None] = {}
        parts: dict[pathlib.Path, pathlib.Path] = {}
        for source, members, command, directory in compiled(build):
            apart = source.parent.name == "Unity" and parts.setdefault(source.parent, source) != source
            for file in map(pathlib.Path, members):
                if file.is_relative_to(REPOSITORY / folder):
                    name = str(file.relative_to(REPOSITORY))
                    group = f"{folder}/{source.stem}" if apart else folder
                    groups.setdefault(name if name in ALONE else group, set()).add(file)
                    compiler, place = command[:1], directory
                    kept |= dict.fromkeys(options(command))
        assert groups, f"no sources below {folder} in {build}/compile_commands.json"
        for name, files in sorted(groups.items()):
            file = cache / "together" / (name.removesuffix(".cpp").replace("/", "_") + ".cpp")
            file.parent.mkdir(exist_ok=True)
            text = f'#include "{files.pop()}"\n' if name in ALONE else as_one(sorted(files))
            if not file.exists() or file.read_text() != text:
                file.write_text(text)
            yield folder.split("/", maxsplit=1)[0], file, [*compiler, f"-I{REPOSITORY}", f"-I{REPOSITORY}/tests", *kept, str(file)], place


def checks(folder: str, without: list[str]) -> str:
    """What .clang-tidy of a folder adds to the checks of the root's; that sources are included is how they are compiled
    as one."""
    own = REPOSITORY / folder / ".clang-tidy"
    added = yaml.safe_load(own.read_text())["Checks"].strip() + "," if own.exists() else ""
    return added + ",".join(f"-{check}" for check in ["bugprone-suspicious-include", *without])


def preprocessed(command: list[str], directory: str) -> bytes:
    """What the compiler sees, with comments (NOLINT) and macro definitions."""
    compiler = next(i for i, word in enumerate(command) if "clang++" in word)
    words = command[compiler:]
    kept = [word for word, before in zip(words, ["", *words]) if word != "-c" and word != "-o" and before != "-o"]
    return subprocess.run([*kept, "-E", "-C", "-dD"], cwd=directory, check=True, stdout=subprocess.PIPE).stdout


def check(folder, file, command, directory, build, cache, version) -> str:
    """Empty when the file is clean, else the findings."""
    made_here = cache in file.parents
    configuration = [f"--config-file={CONFIGURATION}", f"--checks={checks(folder, QUADRATIC if made_here else [])}"]
    digest = hashlib.sha256(version + CONFIGURATION.read_bytes() + configuration[1].encode())
    digest.update(shlex.join(command).encode())
    try:
        digest.update(preprocessed(command, directory))
    except subprocess.CalledProcessError as error:
        return f"{file}: does not compile ({error})\n"
    stamp = cache / digest.hexdigest()
    if stamp.exists():
        stamp.touch()
        return ""
    # Of a source that was made here the compile database has nothing.
    compiling = ["--", *command[1:-1]] if made_here else []
    checked = subprocess.run(
        [TIDY, "-p", str(build), *configuration, "--quiet", str(file), *compiling], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if checked.returncode == 0:
        stamp.touch()
        return ""
    return checked.stdout or checked.stderr


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("cache", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--together", nargs="+", default=[], metavar="FOLDER")
    parser.add_argument("--slow", action="store_true")
    given = parser.parse_args()
    if given.slow and os.environ.get("TACHO_SKIP_SLOW", "0") != "0":
        print("SKIPPED takes long: TACHO_SKIP_SLOW is set")
        return 77
    build, cache = given.build, given.cache
    cache.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([TIDY, "--version"], check=True, stdout=subprocess.PIPE).stdout
    todo = list(together(build, cache, given.together)) if given.together else sources(build, given.parts)
    if not todo:
        print(f"tidy: no sources in {build}/compile_commands.json", file=sys.stderr)
        return 1
    found: set[str] = set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(check, *source, build, cache, version) for source in todo]
        for job in concurrent.futures.as_completed(jobs):
            # A finding in a header turns up in every file that includes it.
            for finding in re.split(r"(?m)^(?=/.*: (?:error|warning): )", job.result()):
                if finding.strip() and finding not in found:
                    found.add(finding)
                    print(finding, end="", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
