"""memcslap, the load generator of libmemcached-tools."""

import re

from support.clients.counted import Counted, find
from support.process import run


def memcslap(port: int, requests: int = 20_011, threads: int = 8) -> Counted:
    """Stores `requests` keys over one connection, then every thread reads them all over one of its own."""
    report = run([
        "memcslap", "-s", f"127.0.0.1:{port}", f"--concurrency={threads}", f"--execute-number={requests}",
        "--test=get",
    ])  # fmt: skip
    return parse(report)


def parse(report: str) -> Counted:
    phases = re.findall(r"^Time to (?:set|get)\s+(\d+) keys\D.*?([\d.]+) seconds", report, re.MULTILINE)
    if len(phases) != 2:
        find(r"^Time to set", report, "memcslap")
        raise ValueError(f"memcslap reported {len(phases)} phases, not set and get:\n{report}")
    return Counted(
        client="memcslap",
        requests=sum(int(count) for count, _ in phases),
        seconds=sum(float(seconds) for _, seconds in phases),
    )
