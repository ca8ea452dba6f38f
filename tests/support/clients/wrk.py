"""wrk, the HTTP load generator."""

from support.clients.counted import Counted, find
from support.process import run

UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def wrk(url: str, connections: int = 16, threads: int = 2, seconds: int = 4, prefix=()) -> Counted:
    """Loads the URL; when wrk stops, every connection may have one more request under way."""
    report = run(
        ["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", url], prefix=prefix, timeout=seconds + 30
    )
    return parse(report, connections)


def wrk_latencies(url: str, connections: int, seconds: int = 3, prefix=()) -> tuple[float, float]:
    """Median and 99th percentile, in seconds, of one thread that waits for each reply before it asks again."""
    report = run(
        ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", url], prefix=prefix, timeout=seconds + 30
    )
    found = [find(rf"^\s+{percent}%\s+([\d.]+)(us|ms|s|m)$", report, "wrk") for percent in (50, 99)]
    median, tail = (float(match[1]) * UNITS[match[2]] for match in found)
    return median, tail


def parse(report: str, connections: int) -> Counted:
    """Raises ValueError when wrk saw errors: then nobody knows how many requests were answered."""
    for trouble in ("Socket errors", "Non-2xx"):
        if trouble in report:
            raise ValueError(f"wrk saw errors:\n{report}")
    found = find(r"^\s*(\d+) requests in ([\d.]+)(us|ms|s|m|h),", report, "wrk")
    return Counted(
        client="wrk",
        requests=int(found[1]),
        seconds=float(found[2]) * UNITS[found[3]],
        most_extra=connections,
        extra="in flight",
    )
