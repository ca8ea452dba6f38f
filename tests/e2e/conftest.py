"""Fixtures of the end-to-end tests. They need root and a kernel with BTF; without them every test says so and is skipped."""

import contextlib
import os
import pathlib
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support import ledger  # noqa: E402
from support.cgroup import Cgroup  # noqa: E402
from support.privilege import why_not  # noqa: E402
from support.tacho import Tacho  # noqa: E402

_rows: list[list] = []

# For a build by the preset asan (TACHO_BUILD=build/asan): LeakSanitizer looks at a process as a debugger does, which tacho's
# filter of system calls refuses. Leaks are for the unit and kernel tests.
os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0")


def pytest_configure(config):
    config.addinivalue_line("markers", "leaves_open: requests are in flight when the test ends")


def pytest_collection_modifyitems(items):
    if reason := why_not():
        for item in items:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_terminal_summary(terminalreporter):
    if _rows:
        terminalreporter.write_line(ledger.table(_rows))


def _nothing_in_flight(tacho: Tacho) -> None:
    """The clients of a test have ended: seconds later none of its targets has a request in flight, whatever their ends
    were like."""
    if any(str(word).startswith("--web.config.file") for word in tacho.process.argv):
        return  # It speaks TLS, or wants a password.
    status, _, body = tacho.http("/metrics")
    assert status == 200, f"/metrics has status {status}"
    if b"tacho_requests_in_flight" not in body:
        return  # It observes no sockets.
    deadline = time.monotonic() + 10
    own = tacho.own_targets()
    while left := [row for row in tacho.scrape().all("tacho_requests_in_flight") if row[1] and row[0]["target"] in own]:
        assert time.monotonic() < deadline, f"still in flight: {left}"
        time.sleep(0.1)


@pytest.fixture(autouse=True)
def ends_well(request, monkeypatch):
    """In flight is 0 at the end of every test that is not marked `leaves_open`."""
    if request.node.get_closest_marker("leaves_open") is None:
        monkeypatch.setattr(Tacho, "farewell", staticmethod(_nothing_in_flight))


@pytest.fixture
def cgroups():
    """Makes cgroups that are removed at the end of the test: cgroups("name")."""
    with contextlib.ExitStack() as stack:
        yield lambda name: stack.enter_context(Cgroup(name))


# Losses that a target's own doing causes: more peers than there are places, bytes that are no HTTP/2 (bpf/lib/loss.h).
BY_TARGETS = ("peer_overflow", "http2_step", "http2_stream")


@pytest.fixture
def agree():
    """Asserts that tacho counted what the client counted, and adds a row to the table of the run. A tacho that is not `alone` with
    the test watches other tests' servers, too: what these lose by what they do is no matter."""

    def check(server: str, counted, change, *, alone: bool = True) -> None:
        row = [server, counted.client, counted.expectation(), change.requests, change.sends]
        _rows.append(row)
        ledger.record(*row)
        lost = [labels for labels, events in change.after.all("tacho_lost_events_total", probe="socket")
                if events and labels["reason"] not in ("skipped", *(() if alone else BY_TARGETS))]  # fmt: skip
        assert not lost, f"{server}: events were lost: {lost}"
        assert counted.admits(change.requests), f"{server}: {counted.expectation()} expected, {change.requests} counted"

    return check
