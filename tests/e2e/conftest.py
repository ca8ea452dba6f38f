"""Fixtures of the end-to-end tests. They need root and a kernel with BTF; without them every test says so and is skipped."""

import contextlib
import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support import ledger  # noqa: E402
from support.cgroup import Cgroup, cgroup2_mount  # noqa: E402

_rows: list[list] = []


def _why_not() -> str | None:
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


def pytest_collection_modifyitems(items):
    if reason := _why_not():
        for item in items:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_terminal_summary(terminalreporter):
    if _rows:
        terminalreporter.write_line(ledger.table(_rows))


@pytest.fixture
def cgroups():
    """Makes cgroups that are removed at the end of the test: cgroups("name")."""
    with contextlib.ExitStack() as stack:
        yield lambda name: stack.enter_context(Cgroup(name))


@pytest.fixture
def agree():
    """Asserts that tacho counted what the client counted, and adds a row to the table of the run."""

    def check(server: str, counted, change) -> None:
        row = [server, counted.client, counted.expectation(), change.requests, change.sends]
        _rows.append(row)
        ledger.record(*row)
        lost = [labels for labels, events in change.after.all("tacho_lost_events_total", probe="socket") if events]
        assert not lost, f"{server}: events were lost: {lost}"
        assert counted.admits(change.requests), f"{server}: {counted.expectation()} expected, {change.requests} counted"

    return check
