"""A machine of systemd's own: the init system of this machine as process 1 of namespaces, with a copy-on-write root.

What it starts is what it would start at boot, with the sandboxes of its units, but nothing of this machine's own services.
Needs the namespaces of tests/node/inside.
"""

import json
import pathlib
import shutil
import tempfile

from support.cgroup import Cgroup
from support.paths import BUILD, EXACT_SERVER, REPOSITORY, TACHO, require
from support.process import Process, run
from support.waiting import wait_until

SYSTEMD = pathlib.Path("/lib/systemd/systemd")
PACKAGE = REPOSITORY / "deploy" / "package"
TARGET = """[Unit]
Requires=systemd-journald.service
After=systemd-journald.service
"""
# Before process 1: what a kernel and an initramfs leave.
BOOT = """
mount -t proc proc "$0/proc"
mount -t sysfs sysfs "$0/sys"
mount -t tracefs tracefs "$0/sys/kernel/tracing"
mount -t cgroup2 cgroup2 "$0/sys/fs/cgroup"
mount --rbind /dev "$0/dev"
mount -t tmpfs tmpfs "$0/run"
cd "$0"
# No mere chroot: in one of those nobody may make a user namespace, as rootless engines do.
pivot_root . tmp
umount --lazy tmp
mount -t tmpfs tmpfs tmp
mount --make-rshared /
exec chroot . /usr/bin/env -i container=tacho-test PATH=/usr/sbin:/usr/bin /lib/systemd/systemd \
  --system --unit=tests.target --show-status=0
"""


def why_not() -> str | None:
    """Why it cannot run here; None if it can."""
    return None if SYSTEMD.exists() else f"{SYSTEMD} is not there: deploy/install-deps node"


class Machine:
    """Runs until the `with` is left. The package's unit, configuration and program are where the package puts them."""

    def __init__(self):
        (BUILD / "tests" / "node").mkdir(parents=True, exist_ok=True)
        # Overlays cannot lie on all file systems: the build's is a real one.
        self._directory = tempfile.TemporaryDirectory(prefix="machine-", dir=BUILD / "tests" / "node")
        place = pathlib.Path(self._directory.name)
        self.root = place / "root"
        for name in ("changes", "work", "root"):
            (place / name).mkdir()
        run(["mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={place}/changes,workdir={place}/work", self.root])
        for wants in (self.root / "etc/systemd/system").glob("*.wants"):
            shutil.rmtree(wants)
        self.write("etc/systemd/system/tests.target", TARGET)
        self.write("etc/machine-id", "0123456789abcdef" * 2 + "\n")
        self.write("etc/systemd/system/tacho.service", (PACKAGE / "tacho.service").read_text())
        self.write("etc/default/tacho", (PACKAGE / "tacho.default").read_text())
        self.write("etc/tacho/tacho.yaml", (REPOSITORY / "config/tacho.yaml").read_text())
        # A checkout below /tmp is not there.
        for program in (TACHO, EXACT_SERVER):
            shutil.copy(require(program), self.root / "usr/bin")
        self._cgroup = Cgroup("machine")

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def command(self, *words) -> tuple[int, str]:
        """Exit status and output of a command inside."""
        first = self._first_process()
        process = Process(["nsenter", f"--target={first}", "--mount", "--pid", "--cgroup", "--root", "--", *words])
        return process.wait(timeout=100), process.output

    def property(self, name: str, unit: str = "tacho.service") -> str:
        return self.command("systemctl", "show", "--property", name, "--value", unit)[1].strip()

    def journal(self, unit: str = "tacho.service") -> list[tuple[int, str]]:
        """Priority and text of each line of a unit's. Of a process that has ended meanwhile the journal no longer knows the program (_COMM)."""
        lines = self.command("journalctl", "--no-pager", "--output=json", f"--unit={unit}")[1].splitlines()
        entries = [json.loads(line) for line in lines if line.startswith("{")]
        return [(int(entry["PRIORITY"]), entry["MESSAGE"]) for entry in entries if entry.get("SYSLOG_IDENTIFIER") == "tacho"]

    def _first_process(self) -> str:
        children = pathlib.Path(f"/proc/{self._boot.pid}/task/{self._boot.pid}/children").read_text().split()
        if len(children) != 1:
            raise ProcessLookupError(f"no process 1: {self._boot.output}")
        return children[0]

    def __enter__(self):
        namespaces = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--cgroup", "--propagation", "private"]
        self._boot = Process([*namespaces, "bash", "-euc", BOOT, self.root], prefix=self._cgroup.prefix)
        try:
            wait_until(lambda: self.command("systemctl", "is-system-running")[1].strip() == "running", 30, "it has booted",
                       interval=0.1)  # fmt: skip
        except TimeoutError as error:
            self.__exit__()
            raise RuntimeError(f"systemd does not start: {error}\n{self._boot.output}") from None
        return self

    def __exit__(self, *_):
        self._boot.signal(9)
        self._boot.wait()
        self._cgroup.remove()
        run(["umount", self.root])
        self._directory.cleanup()
