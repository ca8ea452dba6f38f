"""What a run has time for: tests that its short form leaves out, those for which no time is left, second tries.

TACHO_SKIP_SLOW (set, and not 0) asks for the short form, TACHO_DEADLINE (Unix time) is when the run should have ended,
TACHO_FAILED names a file of the tests that have failed in this run. As a plugin of pytest (`-p support.slow`) it tries
these alone again where their module is tried again, and skips whatever would begin after the deadline; what has failed
before stays failed then.
"""

import os
import pathlib
import time

import pytest

SKIPPED = os.environ.get("TACHO_SKIP_SLOW", "") not in ("", "0")
NO_TIME = "no time: "


def slow(what: str):
    """A mark: says what is left out where TACHO_SKIP_SLOW is set."""
    return pytest.mark.skipif(SKIPPED, reason=f"{what}: TACHO_SKIP_SLOW is set")


def slow_but(chosen, everything, what: str) -> list:
    """Parameters of a test, of which the short form has only some; a tuple is several."""
    return [
        pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=[] if one in chosen else slow(what)) for one in everything
    ]


def left() -> float:
    """Seconds until the run should have ended."""
    return float(os.environ.get("TACHO_DEADLINE", "inf")) - time.time()


def needs(seconds: float, what: str) -> None:
    """Skips the short form of what takes up to so long, and where that is not left."""
    if SKIPPED:
        pytest.skip(f"{what}: TACHO_SKIP_SLOW is set")
    if left() < seconds:
        pytest.skip(f"{what}: {NO_TIME}needs up to {seconds} s, {left():.0f} s are left of TACHO_TIME_BUDGET")


def _failed() -> set[str]:
    """Names of the tests that have failed in this run."""
    file = pathlib.Path(os.environ.get("TACHO_FAILED", os.devnull))
    return set(file.read_text().splitlines()) if file.exists() else set()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    failed = _failed()
    again = [item for item in items if item.nodeid in failed]
    if again:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in failed])
        items[:] = again


def pytest_runtest_setup(item):
    if left() > 0:
        return
    if item.nodeid in _failed():
        pytest.fail("it failed before, and no time is left to try it again")
    pytest.skip(f"{NO_TIME}TACHO_TIME_BUDGET was used up {-left():.0f} s ago")


def pytest_runtest_logreport(report):
    if report.failed and "TACHO_FAILED" in os.environ:
        with open(os.environ["TACHO_FAILED"], "a") as file:
            file.write(report.nodeid + "\n")
