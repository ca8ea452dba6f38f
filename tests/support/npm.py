"""Packages of npm's that a test pins by a lock file, installed once in a build directory."""

import pathlib
import shutil

from support.process import Process

# What npm says when there is no registry to ask; anything else is a failure.
UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "ERR_SOCKET_TIMEOUT")


class Unavailable(Exception):
    """There is no npm, or none of the registries answers; the message says which."""


def install(pinned: pathlib.Path, workshop: pathlib.Path) -> None:
    """Installs what package.json and package-lock.json in `pinned` say into `workshop`."""
    if shutil.which("npm") is None:
        raise Unavailable("there is no npm")
    workshop.mkdir(parents=True, exist_ok=True)
    lock = (pinned / "package-lock.json").read_text()
    stamp = workshop / "installed-lock.json"
    if stamp.exists() and stamp.read_text() == lock:
        return
    stamp.unlink(missing_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(pinned / name, workshop)
    npm = Process(
        ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=30000"],
        cwd=workshop,
    )
    if npm.wait(timeout=200) != 0:
        for code in UNREACHABLE:
            if code in npm.output:
                raise Unavailable(f"npm cannot reach a registry ({code})")
        raise RuntimeError(f"npm ci failed:\n{npm.output}")
    stamp.write_text(lock)


def typescript(workshop: pathlib.Path, *files: str) -> str:
    """What the TypeScript compiler says about files in the workshop; empty when nothing is wrong."""
    check = Process(
        ["node", "node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--target", "es2022",
         "--module", "nodenext", "--pretty", "false", *files],
        cwd=workshop,
    )  # fmt: skip
    status = check.wait(timeout=200)
    if (status == 0) != (check.output == ""):
        raise RuntimeError(f"tsc ended with {status}:\n{check.output}")
    return check.output
