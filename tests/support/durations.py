"""Durations of requests against what the client measured, by the native histogram: its buckets are 4.4 % wide."""

import contextlib
import math

from support import ledger, protobuf

FAMILY = "tacho_request_duration_seconds"


@contextlib.contextmanager
def durations(tacho, name: str, change):
    """Gives a change `duration(q)`: a quantile of what is observed while the block runs."""
    before = tacho.native(FAMILY, target=name)
    yield
    tacho.settled(name)
    after = tacho.native(FAMILY, target=name)
    change.duration = lambda q: protobuf.quantile(after, q, before)


def check_durations(what: str, change, times, works: bool = True) -> None:
    """The 75th and the 99th of 100 within 15 % and 100 µs of the client's: where half of the requests are short, the median
    is anything between them and the others.

    Where the server works for no longer than a client takes to read an answer, tacho's may be less, and so may the 99th
    everywhere: one client in a hundred waits for a CPU of its own, which is no time of the server's.
    """
    lines, bad = [], []
    for q in (0.75, 0.99):
        tacho = change.duration(q)
        client = sorted(times)[math.ceil(q * len(times)) - 1]
        lines.append(f"{what}, p{100 * q:.0f}: client {client * 1e6:.0f} µs, tacho {tacho * 1e6:.0f} µs")
        ledger.note(lines[-1])
        if tacho > 1.15 * client + 100e-6 or (works and q < 0.99 and client > 1.15 * tacho + 100e-6):
            bad.append(lines[-1])
    assert not bad, lines
