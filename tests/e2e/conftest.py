"""Fixtures of the end-to-end tests. They need root and a kernel with BTF; without them every test says so and is skipped."""

import contextlib
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support import ledger  # noqa: E402
from support.cgroup import Cgroup  # noqa: E402
from support.privilege import why_not  # noqa: E402

_rows: list[list] = []


def pytest_collection_modifyitems(items):
    if reason := why_not():
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
        lost = [labels for labels, events in change.after.all("tacho_lost_events_total", probe="socket")
                if events and labels["reason"] != "skipped"]  # fmt: skip
        assert not lost, f"{server}: events were lost: {lost}"
        assert counted.admits(change.requests), f"{server}: {counted.expectation()} expected, {change.requests} counted"

    return check
