"""What a run has time for: tests that its short form leaves out, and those for which no time is left.

TACHO_SKIP_SLOW (set, and not 0) asks for the short form, TACHO_DEADLINE (Unix time) is when the run should have ended. As
a plugin of pytest (`-p support.slow`) it skips whatever would begin later; what has failed in this run stays failed.
"""

import os
import pathlib
import time

import pytest

SKIPPED = os.environ.get("TACHO_SKIP_SLOW", "") not in ("", "0")
NO_TIME = "no time: "
# tests/run begins it anew.
FAILED = pathlib.Path(os.environ.get("TACHO_BUILD", "build/release"), "Testing", "failed")


def slow(what: str):
    """A mark: says what is left out where TACHO_SKIP_SLOW is set."""
    return pytest.mark.skipif(SKIPPED, reason=f"{what}: TACHO_SKIP_SLOW is set")


def slow_but(chosen, everything, what: str) -> list:
    """Parameters of a test, of which the short form has only some."""
    return [pytest.param(one, marks=[] if one in chosen else slow(what)) for one in everything]


def left() -> float:
    """Seconds until the run should have ended."""
    return float(os.environ.get("TACHO_DEADLINE", "inf")) - time.time()


def needs(seconds: float, what: str) -> None:
    """Skips the short form of what takes up to so long, and where that is not left."""
    if SKIPPED:
        pytest.skip(f"{what}: TACHO_SKIP_SLOW is set")
    if left() < seconds:
        pytest.skip(f"{what}: {NO_TIME}needs up to {seconds} s, {left():.0f} s are left of TACHO_TIME_BUDGET")


def pytest_runtest_setup(item):
    if left() > 0:
        return
    if FAILED.exists() and item.nodeid in FAILED.read_text().splitlines():
        pytest.fail("it failed before, and no time is left to try it again")
    pytest.skip(f"{NO_TIME}TACHO_TIME_BUDGET was used up {-left():.0f} s ago")


def pytest_runtest_logreport(report):
    if report.failed and "TACHO_DEADLINE" in os.environ:
        FAILED.parent.mkdir(parents=True, exist_ok=True)
        with FAILED.open("a") as list_of_them:
            list_of_them.write(report.nodeid + "\n")
