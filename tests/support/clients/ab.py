"""ab, Apache's HTTP benchmark: a number of requests on kept connections, or a connection for each."""

from support.clients.counted import Counted, find
from support.process import run


def ab(url: str, requests: int, connections: int = 4, keep_alive: bool = False, tls: str = "") -> Counted:
    """Requests the URL; `tls` is the version to speak, as in "TLS1.3".

    On a kept connection it sends the next request before it looks whether there were enough.
    """
    options = ["-q", "-n", requests, "-c", connections, *(["-k"] if keep_alive else []), *(["-f", tls] if tls else [])]
    return parse(run(["ab", *options, url]), connections if keep_alive else 0)


def parse(report: str, in_flight: int) -> Counted:
    """Raises ValueError when a request failed: nobody knows whether it was answered."""
    done = find(r"^Complete requests: +(\d+)$", report, "ab")
    find(r"^Failed requests: +0$", report, "ab")
    if "Non-2xx" in report:
        raise ValueError(f"ab was refused:\n{report}")
    seconds = find(r"^Time taken for tests: +([\d.]+) seconds$", report, "ab")
    return Counted(
        client="ab -k" if in_flight else "ab",
        requests=int(done[1]),
        seconds=float(seconds[1]),
        most_extra=in_flight,
        extra="in flight" if in_flight else "",
    )
