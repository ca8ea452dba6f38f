"""The client that sends a known number of requests (tests/support/exact_client.cpp)."""

import json
import signal
import subprocess

from support import paths
from support.clients.counted import Counted
from support.process import Process


def _flags(options: dict) -> list[str]:
    return [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]


def _counted(line: str) -> Counted:
    outcome = json.loads(line)
    if outcome["failed"]:
        raise RuntimeError(f"{outcome['failed']} requests were not answered: {line}")
    return Counted(client="exact_client", requests=outcome["requests"], seconds=outcome["elapsed_seconds"])


def exact(address: str, requests: int, prefix=(), timeout: float = 120, **options) -> Counted:
    """Sends `requests` requests; options as of `exact_client --help`, with underscores."""
    with ExactLoad(address, prefix=prefix, requests=requests, **options) as load:
        return load.result(timeout)


class ExactLoad:
    """The same in the background: until all requests are sent, or without `requests=` until `finish()`."""

    def __init__(self, address: str, prefix=(), stdin=None, **options):
        self.process = Process(
            [paths.require(paths.EXACT_CLIENT), f"--connect={address}", *_flags(options)], prefix=prefix, stdin=stdin
        )

    def result(self, timeout: float = 120) -> Counted:
        """Waits for the end."""
        if self.process.wait(timeout) != 0:
            raise RuntimeError(f"exact_client failed:\n{self.process.output}")
        return _counted(self.process.output.splitlines()[-1])

    def finish(self) -> Counted:
        """Ends the load after the replies that are under way."""
        self.process.wait_for_line('"connected"')
        self.process.signal(signal.SIGTERM)
        return self.result()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.__exit__(*error)


class ExactBatches(ExactLoad):
    """Connections that stay open while batch after batch of requests goes over them."""

    def __init__(self, address: str, connections: int = 1, prefix=(), **options):
        super().__init__(
            address, prefix=prefix, stdin=subprocess.PIPE, connections=connections, interactive="true", **options
        )
        self.process.wait_for_line('"connected"')

    def send(self, requests: int) -> Counted:
        """One batch, waited for."""
        seen = self.process.line_count
        self.process.tell(str(requests))
        return _counted(self.process.wait_for_line(r"^\{.*\}$", timeout=60, start=seen).group(0))
