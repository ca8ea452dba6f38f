"""Waiting for conditions that no event announces."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T], timeout: float, what: str, interval: float = 0.01) -> T:
    """Polls until `condition()` is true and returns its value; after `timeout` seconds raises TimeoutError naming `what`.

    What the last look saw is part of the message, also when it was an exception.
    """
    deadline = time.monotonic() + timeout
    while True:
        seen: object
        try:
            seen = value = condition()
            if value:
                return value
        except (OSError, LookupError) as error:
            seen = repr(error)
        if time.monotonic() >= deadline:
            raise TimeoutError(f"not within {timeout} s: {what} (last look: {seen})")
        time.sleep(interval)
