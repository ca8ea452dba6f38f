"""What tests on the real kernel need of the machine."""

import os

from support.cgroup import cgroup2_mount


def why_not() -> str | None:
    """Why they cannot run here, or None."""
    if os.geteuid() != 0:
        return "needs root: BPF programs are loaded and cgroups made"
    if not os.access("/sys/kernel/btf/vmlinux", os.R_OK):
        return "needs a kernel with BTF: /sys/kernel/btf/vmlinux cannot be read"
    try:
        mount = cgroup2_mount()
    except FileNotFoundError as error:
        return str(error)
    if not os.access(mount, os.W_OK):
        return f"needs to make cgroups: {mount} is not writable"
    return None
