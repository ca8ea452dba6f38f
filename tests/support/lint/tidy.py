"""clang-tidy for the sources of a compile database, skipping what was clean before.

    tidy.py BUILD CACHE [PART…]

BUILD is a build directory of clang's (preset `clang`), CACHE remembers clean files, PART restricts to files whose path
contains it. A file is clean before if the same text, after preprocessing and with its comments, passed the same
configuration: any header that it includes is part of that text.
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

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
TIDY = "clang-tidy-19"


def sources(build: pathlib.Path, parts: list[str]):
    """(file, compile command) of our own sources; generated and foreign ones are elsewhere."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["directory"], entry["file"]).resolve()
        ours = any(file.is_relative_to(REPOSITORY / folder) for folder in ("exporter", "tests"))
        if ours and (not parts or any(part in str(file) for part in parts)):
            yield file, shlex.split(entry["command"]), entry["directory"]


def preprocessed(command: list[str], directory: str) -> bytes:
    """What the compiler sees, with comments (NOLINT) and macro definitions."""
    words = command[1:] if command[0].endswith("ccache") else command
    kept = [word for word, before in zip(words, ["", *words]) if word != "-c" and word != "-o" and before != "-o"]
    return subprocess.run([*kept, "-E", "-C", "-dD"], cwd=directory, check=True, stdout=subprocess.PIPE).stdout


def check(file, command, directory, build, cache, configuration) -> str:
    """Empty when the file is clean, else the findings."""
    digest = hashlib.sha256(configuration)
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
        [TIDY, "-p", str(build), "--quiet", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if checked.returncode == 0:
        stamp.touch()
        return ""
    return checked.stdout or checked.stderr


def main(build: pathlib.Path, cache: pathlib.Path, parts: list[str]) -> int:
    cache.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([TIDY, "--version"], check=True, stdout=subprocess.PIPE).stdout
    configuration = version + b"".join(
        (REPOSITORY / folder / ".clang-tidy").read_bytes() for folder in (".", "tests")
    )
    todo = list(sources(build, parts))
    if not todo:
        print(f"tidy: no sources in {build}/compile_commands.json", file=sys.stderr)
        return 1
    found: set[str] = set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(check, *source, build, cache, configuration) for source in todo]
        for job in concurrent.futures.as_completed(jobs):
            # A finding in a header turns up in every file that includes it.
            for finding in re.split(r"(?m)^(?=/.*: (?:error|warning): )", job.result()):
                if finding.strip() and finding not in found:
                    found.add(finding)
                    print(finding, end="", flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]), sys.argv[3:]))
