"""Tests that the short form of a run leaves out."""

import os

import pytest

SKIPPED = os.environ.get("TACHO_SKIP_SLOW", "") not in ("", "0")


def slow(what: str):
    """A mark: says what is left out where TACHO_SKIP_SLOW is set."""
    return pytest.mark.skipif(SKIPPED, reason=f"{what}: TACHO_SKIP_SLOW is set")


def slow_but(chosen, everything, what: str) -> list:
    """Parameters of a test, of which the short form has only some."""
    return [pytest.param(one, marks=[] if one in chosen else slow(what)) for one in everything]
