"""The open-loop client (tests/support/open_loop_client.cpp): requests are due when a Poisson process says so."""

import dataclasses
import json
import subprocess

from support import paths
from support.process import Process


@dataclasses.dataclass(frozen=True)
class Burst:
    """What one load came to; times in seconds, `started` on the clock of time.monotonic().

    `latency` counts from when a request was due, `round_trip` from when it was sent: mean, p50, p90, p99, max.
    `cpu_seconds` and `run_queue_seconds` are the client's own: how much of its CPU it used, and how long others kept it from it.
    `timeline` holds the requests completed in each `timeline_bin` seconds; empty if the client does not tell.
    """

    started: float
    elapsed: float
    offered: int
    sent: int
    completed: int
    errors: int
    dropped: int
    latency: dict | None
    round_trip: dict | None
    cpu_seconds: float = 0
    run_queue_seconds: float = 0
    lost: int = 0  # on purpose, before they reached the server
    timeline: list = dataclasses.field(default_factory=list)
    timeline_bin: float = 0.01

    @property
    def answered(self) -> int:
        """Requests that the server has answered: also those whose answer was lost, if that was asked for."""
        return self.sent - self.lost if self.lost else self.completed

    def completed_by(self, moment: float) -> float:
        """Requests completed by then, linear within a bin."""
        bins = max(0.0, (moment - self.started) / self.timeline_bin)
        whole = int(bins)
        part = self.timeline[whole] * (bins - whole) if whole < len(self.timeline) else 0
        return sum(self.timeline[:whole]) + part


class OpenLoop:
    """Connections of their own to a server, kept from burst to burst."""

    def __init__(self, address: str, protocol: str, request: str, prefix=(), reconnect: bool = False, **options):
        flags = [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
        if reconnect:
            flags.append("--reconnect")
        program = paths.require(paths.OPEN_LOOP_CLIENT)
        self.process = Process(
            [program, f"--connect={address}", f"--protocol={protocol}", f"--request={request}", *flags],
            prefix=prefix, stdin=subprocess.PIPE,
        )  # fmt: skip
        self.process.wait_for_line('"connected"')

    def start(self, rate: float, seconds: float, seed: int) -> None:
        """Requests arrive for `seconds`; `rate` 0: a closed loop, as many at a time as there are connections."""
        self._seen = self.process.line_count
        self.process.tell(f"{rate} {seconds} {seed}")

    def result(self, timeout: float) -> Burst:
        """Of the burst that was started, once its last reply is there."""
        return Burst(**json.loads(self.process.wait_for_line(r'^\{"completed".*\}$', timeout, self._seen).group(0)))

    def run(self, rate: float, seconds: float, seed: int = 1) -> Burst:
        self.start(rate, seconds, seed)
        return self.result(10 * seconds + 30)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.__exit__(*error)


class FaultProxy:
    """A bad network before `server` (tests/support/fault_proxy.cpp): milliseconds, and the share of data that is late."""

    def __init__(self, server: str, prefix=(), delay: int = 10, late: int = 200, share: float = 0.01, seed: int = 1):
        program = paths.require(paths.FAULT_PROXY)
        self.process = Process([program, server, delay, late, share, seed], prefix=prefix)
        self.address = self.process.wait_for_line(r"^listening (\S+)$").group(1)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.__exit__(*error)
