"""h2load, the load generator of nghttp2, over cleartext HTTP/2."""

import tempfile

from support.clients.counted import Counted, find
from support.clients.wrk import UNITS
from support.process import run


def _command(url: str, connections: int, streams: int, *more) -> list:
    return ["h2load", "-t", 1, "-c", connections, "-m", streams, *more, url]


def h2load(url: str, requests: int, connections: int = 4, streams: int = 32) -> Counted:
    """Sends `requests`, `streams` at a time on each connection."""
    return parse(run(_command(url, connections, streams, "-n", requests), timeout=120))


def h2load_times(url: str, requests: int, streams: int) -> tuple[Counted, list[float]]:
    """As h2load on one connection, and the seconds that each request took until its reply was whole."""
    with tempfile.NamedTemporaryFile("r") as log:
        counted = parse(run(_command(url, 1, streams, "-n", requests, f"--log-file={log.name}"), timeout=120))
        return counted, [int(line.split("\t")[2]) * 1e-6 for line in log]


def h2load_at(url: str, rate: int, seconds: int, connections: int = 4, streams: int = 32) -> Counted:
    """Starts `rate` requests a second on all connections together, as far as the server keeps up."""
    total = rate * seconds
    return parse(run(_command(url, connections, streams, "-n", total, "--rps", rate / connections), timeout=120))


def parse(report: str) -> Counted:
    """Raises ValueError when not every request was answered."""
    found = find(r"^requests: (\d+) total, \d+ started, (\d+) done, (\d+) succeeded", report, "h2load")
    if len({found[1], found[2], found[3]}) != 1:
        raise ValueError(f"h2load saw errors:\n{report}")
    seconds = find(r"^finished in ([\d.]+)(us|ms|s|m|h),", report, "h2load")
    return Counted(client="h2load", requests=int(found[2]), seconds=float(seconds[1]) * UNITS[seconds[2]])
