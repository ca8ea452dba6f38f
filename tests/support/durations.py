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


# A native histogram's.
BUCKET = 1.045


def check_durations(what: str, change, times, works: bool = True, known: float = 0, quantiles=(0.5, 0.75, 0.99)) -> None:
    """The median, the 75th and the 99th of 100 within 15 % and 100 µs of the client's.

    Where the server works for no longer than a client takes to read an answer, tacho's may be less, and so may the 99th
    everywhere: one client in a hundred waits for a CPU of its own, after the reply has come, which is no time of the
    server's. There `known` says how long the server has worked for more than one request in a hundred: tacho's 99th is no
    less. `quantiles` are without the median where half of the requests are short: it is anything between them and the others.
    """
    lines, bad = [], []
    for q in quantiles:
        tacho = change.duration(q)
        client = sorted(times)[math.ceil(q * len(times)) - 1]
        lines.append(f"{what}, p{100 * q:.0f}: client {client * 1e6:.0f} µs, tacho {tacho * 1e6:.0f} µs")
        ledger.note(lines[-1])
        too_little = tacho * BUCKET < known if q == 0.99 else works and client > 1.15 * tacho + 100e-6
        if too_little or tacho > 1.15 * client + 100e-6:
            bad.append(lines[-1])
    assert not bad, lines
