"""What is booted: a row of the table each, with what the row must show."""

import shlex
from dataclasses import dataclass

from matrix.kernels import KERNELS, Kernel

SELECTOR = "cgroup: /e2e*"
SERVICE_STEPS = ("booted", "counted", "kprobes", "purged")
# Of each way in which the programs differ one: without socket storage, by fentry, by kprobes with all that is new.
SHORT = ("5.10 amd64, kprobe", "6.1 amd64, auto", "sid amd64, kprobe")


@dataclass(frozen=True)
class Row:
    kernel: Kernel
    method: str  # forced; "auto": none is
    uses: str  # the method that must turn out to be in use for sends and receives
    cgroups: str = "v2"  # "hybrid", "v1"
    unprivileged: bool = False  # uid 65534 with CAP_BPF and CAP_PERFMON only
    types: bool = True  # False: the kernel's own are hidden, tacho gets a file
    kernel_tests: bool = True
    verifies_twice: bool = True  # before tacho runs, for the verifier's figures: two fifths of a guest's time without kernel tests
    long: bool = False  # only with --long
    systemd: bool = False  # Debian's own boots, with the package installed
    tests: str = ""  # a filter of Catch's: only these of the kernel tests
    cpus: str = ""  # as qemu's -smp; empty: as many as work. Else the last one comes online behind tacho's start

    @property
    def name(self) -> str:
        words = [f"{self.kernel.name} {self.kernel.machine}", self.method]
        if self.cgroups != "v2":
            words.append(f"cgroup {self.cgroups}")
        if self.unprivileged:
            words.append("CAP_BPF, CAP_PERFMON")
        if not self.types:
            words.append("--btf.path")
        if self.systemd:
            words.append("systemd")
        if self.cpus:
            words.append(f"CPUs {self.cpus}")
        return ", ".join(words)

    @property
    def base(self) -> tuple[str, bool, bool]:
        """What its file system depends on."""
        return self.kernel.machine, self.systemd, self.kernel_tests

    @property
    def steps(self) -> list[str]:
        """Names of the results that the row must bring."""
        if self.systemd:
            return list(SERVICE_STEPS)
        return [
            *([] if self.types else ["no-types"]),
            *(["spare-cpu"] if self.cpus else []),
            "plan",
            *(["kernel"] if self.kernel_tests else []),
            "tcp", "tcp6", "unix", "redis", "clock.count", "clock", "parts",
            *(["late-cpu"] if self.cpus else []),
            "many",
        ]  # fmt: skip

    @property
    def state(self) -> str:
        """How the socket probe must keep its state: kprobes and 5.10 know only hash maps."""
        return "hash" if "kprobe" in (self.method, self.uses) or self.kernel.name == "5.10" else "socket_storage"

    @property
    def selection(self) -> str:
        """Options of Catch's: all but what the row's kernel and method cannot do, as README says."""
        wanted = f"--filenames-as-tags {shlex.quote(self.tests)}" if self.tests else ""
        return f"{wanted} '~*HTTP/2*'".lstrip() if self.state == "hash" else wanted

    def job(self) -> str:
        if self.systemd:
            return "".join(f"step {name} {name} {self.uses}\n" for name in self.steps)
        prefix = "/work/setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all,+bpf,+perfmon --ambient-caps=-all,+bpf,+perfmon"
        lines = [f"tacho_prefix='{prefix}'" if self.unprivileged else "tacho_prefix="]
        if self.kernel.preemptible and self.method == "fentry":
            lines.append("tacho_forgives=yes")
        if not self.types:
            lines.append("hide_types_step no-types")
        if self.cpus:
            lines.append("spare_cpu_step spare-cpu")
        if self.verifies_twice:
            lines.append(f"plan_step {self.method}")
        for name, address in (("tcp", "127.0.0.1:0"), ("tcp6", "[::1]:0"), ("unix", "unix:/tmp/socket")):
            lines.append(f"exact_step {self.method} '{SELECTOR}' {name} '{address}'")
        if not self.verifies_twice:
            lines.append("hooks_step plan")
        lines += ["redis_step redis", "clock_step clock", "parts_step parts"]
        if self.cpus:
            lines.append(f"late_cpu_step {self.method} '{SELECTOR}' late-cpu")
        lines += ["many_step many", "end_tacho"]
        if self.kernel_tests:
            lines.append(f"kernel_step {self.method} {self.selection}".rstrip())
        return "\n".join(lines) + "\n"


def rows() -> list[Row]:
    kernels = {(kernel.name, kernel.machine): kernel for kernel in KERNELS}
    all_rows = []
    # The best method of each kernel, then the others that it has.
    offered = {
        ("5.10", "amd64"): ["fentry", "kprobe"],
        ("6.1", "amd64"): ["fentry", "kprobe"],
        ("6.12", "amd64"): ["tp_btf", "fentry", "kprobe"],
        ("sid", "amd64"): ["tp_btf", "fentry", "kprobe"],
        ("6.1", "arm64"): ["fentry", "kprobe"],
        ("6.12", "arm64"): ["tp_btf", "kprobe"],
    }
    for key, (best, *others) in offered.items():
        slow = key[1] == "arm64"
        all_rows.append(Row(kernels[key], "auto", best, long=slow))
        all_rows += [Row(kernels[key], method, method, long=slow, kernel_tests=not slow) for method in others]
    newest = kernels["6.12", "amd64"]
    all_rows.append(Row(newest, "auto", "tp_btf", cgroups="hybrid", kernel_tests=False))
    for name, best in (("5.10", "fentry"), ("6.1", "fentry")):
        all_rows.append(Row(kernels[name, "amd64"], "auto", best, cgroups="v1", kernel_tests=False))
    for name, best in (("6.1", "fentry"), ("6.12", "tp_btf"), ("sid", "tp_btf")):
        all_rows.append(Row(kernels[name, "amd64"], "auto", best, unprivileged=True, kernel_tests=False))
    all_rows.append(Row(kernels["6.1", "amd64"], "auto", "kprobe", types=False, kernel_tests=False))
    # A CPU that comes late. Room for many more CPUs than there are is not to be had here: Linux 6.12 makes none for the CPUs that
    # this emulator may add (maxcpus=), and older kernels have one CPU with its clock.
    all_rows.append(Row(newest, "auto", "tp_btf", cpus="4", tests="[#shards_test]"))
    # The host's release with its own kernel.
    all_rows.append(Row(kernels["6.1", "amd64"], "auto", "fentry", kernel_tests=False, long=True, systemd=True))
    return all_rows
