"""clang-tidy for the sources of a compile database, skipping what was clean before.

    tidy.py BUILD CACHE [PART…]

BUILD is a build directory of clang's (preset `clang`), CACHE remembers clean files, PART restricts to files whose path
contains it, or that of a source which is compiled with it as one (TACHO_UNITY: clang-tidy's checks go through all that
is included, so that a library takes little longer than one of its sources). A file is clean before if the same text,
after preprocessing and with its comments, passed the same configuration: any header that it includes is part of it.
"""

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

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
TIDY = "clang-tidy-19"
CONFIGURATION = REPOSITORY / ".clang-tidy"
FOLDERS = ("exporter", "tests")


def sources(build: pathlib.Path, parts: list[str]):
    """(folder, file, compile command, directory) of our own sources, and of libraries of these; generated and foreign ones are
    elsewhere. What takes longest comes first."""
    found = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["directory"], entry["file"]).resolve()
        together = file.parent.name == "Unity"
        root = build if together else REPOSITORY
        members = re.findall(r'#include "(.*)"', file.read_text()) if together else [str(file)]
        folder = next((folder for folder in FOLDERS if file.is_relative_to(root / folder)), None)
        wanted = not parts or any(part in name for part in parts for name in members)
        if folder and file.suffix != ".c" and wanted:
            found.append((len(members), folder, file, shlex.split(entry["command"]), entry["directory"]))
    return [source for _, *source in sorted(found, key=lambda source: -source[0])]


def checks(folder: str) -> str:
    """What .clang-tidy of a folder adds to the checks of the root's; that sources are included is how they are compiled
    as one."""
    own = REPOSITORY / folder / ".clang-tidy"
    added = yaml.safe_load(own.read_text())["Checks"].strip() + "," if own.exists() else ""
    return added + "-bugprone-suspicious-include"


def preprocessed(command: list[str], directory: str) -> bytes:
    """What the compiler sees, with comments (NOLINT) and macro definitions."""
    compiler = next(i for i, word in enumerate(command) if "clang++" in word)
    words = command[compiler:]
    kept = [word for word, before in zip(words, ["", *words]) if word != "-c" and word != "-o" and before != "-o"]
    return subprocess.run([*kept, "-E", "-C", "-dD"], cwd=directory, check=True, stdout=subprocess.PIPE).stdout


def check(folder, file, command, directory, build, cache, version) -> str:
    """Empty when the file is clean, else the findings."""
    configuration = [f"--config-file={CONFIGURATION}", f"--checks={checks(folder)}"]
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
    checked = subprocess.run(
        [TIDY, "-p", str(build), *configuration, "--quiet", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if checked.returncode == 0:
        stamp.touch()
        return ""
    return checked.stdout or checked.stderr


def main(build: pathlib.Path, cache: pathlib.Path, parts: list[str]) -> int:
    cache.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([TIDY, "--version"], check=True, stdout=subprocess.PIPE).stdout
    todo = sources(build, parts)
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
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]), sys.argv[3:]))
