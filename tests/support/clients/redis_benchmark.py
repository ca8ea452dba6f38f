"""redis-benchmark, from redis-tools."""

from support.clients.counted import Counted, find
from support.process import run


def redis_benchmark(port: int, requests: int = 400_000, connections: int = 20, command: str = "get") -> Counted:
    """Sends `requests` commands. It asks CONFIG GET twice first, in one segment: one or two turns."""
    report = run(
        ["redis-benchmark", "-h", "127.0.0.1", "-p", port, "-n", requests, "-c", connections, "-t", command],
        timeout=300,
    )
    return parse(report)


def parse(report: str) -> Counted:
    # Progress lines end with carriage returns; the summary follows the last one.
    found = find(r"(\d+) requests completed in ([\d.]+) seconds", report, "redis-benchmark")
    return Counted(
        client="redis-benchmark",
        requests=int(found[1]),
        seconds=float(found[2]),
        least_extra=1,
        most_extra=2,
        extra="CONFIG GET",
    )
