"""A kernel under qemu's software emulation: boots it with an initramfs and collects what it says."""

import pathlib
import shutil
import subprocess
from dataclasses import dataclass, field

from matrix.kernels import Kernel
from support.apt import Unavailable

# qemu 7.2's cmpxchg16b corrupts flags, which crashes kernels up to 6.12 under load; without the instruction 7.2's local
# storage and timers silently do nothing.
CPUS = {"5.10": "max,cx16=off", "6.1": "max,cx16=off", "6.12": "max,cx16=off"}
# The guest's clock counts its instructions and leaps over its idle time: a busy host does not make it late, and waiting
# costs nothing. The second CPU of older kernels does not come up with such a clock.
CLOCK = ["-icount", "shift=2,sleep=off", "-rtc", "clock=vm"]
SECOND_CPU = {("6.12", "amd64"), ("sid", "amd64")}


@dataclass
class Boot:
    """What a guest said."""

    release: str = ""
    complete: bool = False  # the end marker came
    results: dict[str, int] = field(default_factory=dict)  # exit status by step
    lines: dict[str, list[str]] = field(default_factory=dict)  # "junit", "plan", "log"
    console: list[str] = field(default_factory=list)

    def take(self, line: str) -> None:
        self.console.append(line)
        # Firmware may leave its escape sequences in front of the first line.
        _, mark, message = line.partition("@@")
        if not mark:
            return
        kind, _, rest = message.partition(" ")
        match kind:
            case "kernel":
                self.release = rest.split()[0]
            case "end":
                self.complete = True
            case "result":
                name, status = rest.rsplit(" ", 1)
                self.results[name] = int(status)
            case other:
                self.lines.setdefault(other, []).append(rest)


def command(kernel: Kernel, image: pathlib.Path, initramfs: pathlib.Path, words: str, cpus: str = "") -> list[str]:
    """`cpus`: as -smp has it; empty: as many as work."""
    if kernel.machine == "amd64":
        emulator, console, cpu = "qemu-system-x86_64", "ttyS0", CPUS.get(kernel.name, "max")
        machine = []
    else:
        emulator, console, cpu = "qemu-system-aarch64", "ttyAMA0", "cortex-a72"
        machine = ["-machine", "virt"]
    cpus = cpus or ("2" if (kernel.name, kernel.machine) in SECOND_CPU else "1")
    if not shutil.which(emulator):
        raise Unavailable(f"{emulator} is not installed: deploy/install-deps matrix")
    return [
        emulator, *machine, "-accel", "tcg,thread=single", *CLOCK, "-cpu", cpu, "-smp", cpus, "-m", "1024", "-nographic", "-no-reboot",
        "-nic", "none", "-kernel", str(image), "-initrd", str(initramfs),
        "-append", f"console={console} quiet loglevel=4 panic=-1 oops=panic tsc=reliable {words}",
    ]  # fmt: skip


def boot(
    kernel: Kernel,
    image: pathlib.Path,
    initramfs: pathlib.Path,
    words: str = "",
    timeout: float = 600,
    echo=None,
    options: list[str] = [],
    cpus: str = "",
) -> Boot:
    """Boots it, waits for it to switch itself off, and returns what it said; ends it after `timeout` seconds.

    `options` are more of the emulator's own.
    """
    outcome = Boot()
    emulator = subprocess.Popen(
        # Not left behind by a matrix that is ended.
        ["setpriv", "--pdeathsig", "TERM", "timeout", "--kill-after=5", str(timeout), *command(kernel, image, initramfs, words, cpus), *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    with emulator:
        for line in emulator.stdout:
            outcome.take(line.rstrip())
            if echo:
                echo(line.rstrip())
    return outcome
