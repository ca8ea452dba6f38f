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


def redis_latencies(port: int, requests: int, connections: int, prefix=()) -> tuple[float, float]:
    """Median and 99th percentile, in seconds."""
    report = run(
        ["redis-benchmark", "-h", "127.0.0.1", "-p", port, "-n", requests, "-c", connections, "-t", "get", "--csv"],
        timeout=120,
        prefix=prefix,
    )
    heading, values = (line.replace('"', "").split(",") for line in report.splitlines()[-2:])
    of = dict(zip(heading, values))
    return float(of["p50_latency_ms"]) * 1e-3, float(of["p99_latency_ms"]) * 1e-3


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
