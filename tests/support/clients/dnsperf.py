"""dnsperf, the load generator for DNS servers."""

import dataclasses
import tempfile

from support.clients.counted import Counted, find
from support.process import run


@dataclasses.dataclass(frozen=True)
class CountedQueries(Counted):
    """`latency` is the mean from sending a query to receiving its answer, in seconds."""

    latency: float = 0.0


def dnsperf(port: int, queries, runs: int, sockets: int = 4, outstanding: int = 20, protocol: str = "udp") -> CountedQueries:
    """Asks each of `queries` ("www.example. A") `runs` times, with `outstanding` open at a time on all sockets together."""
    options = ["-m", protocol, "-n", runs, "-c", sockets, "-q", outstanding, "-T", 1, "-b", 1024, "-t", 20]
    with tempfile.NamedTemporaryFile("w", prefix="tacho-queries-") as file:
        file.write("".join(f"{query}\n" for query in queries))
        file.flush()
        return parse(run(["dnsperf", "-s", "127.0.0.1", "-p", port, "-d", file.name, *options], timeout=60))


def parse(report: str) -> CountedQueries:
    """Raises ValueError when a query was lost: its answer may have been sent and dropped."""
    done = find(r"^  Queries completed: +(\d+) \(100\.00%\)$", report, "dnsperf")
    find(r"^  Queries lost: +0 ", report, "dnsperf")
    return CountedQueries(
        client="dnsperf",
        requests=int(done[1]),
        seconds=float(find(r"^  Run time \(s\): +([\d.]+)$", report, "dnsperf")[1]),
        latency=float(find(r"^  Average Latency \(s\): +([\d.]+) ", report, "dnsperf")[1]),
    )
