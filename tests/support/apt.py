"""Packages of other Debian suites, downloaded but not installed.

The mirror is the one that this machine's apt is configured with (its proxies and credentials apply). A private apt
state reads the signed indices of the other suites, and apt compares every package with them.
"""

import os
import pathlib
import subprocess

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class Unavailable(Exception):
    """Something cannot be had; the message says why."""


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
