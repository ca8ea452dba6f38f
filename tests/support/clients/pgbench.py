"""pgbench, PostgreSQL's own load generator."""

import pathlib
import tempfile

from support.clients.counted import Counted, find
from support.process import run
from support.servers.postgres import Postgres, postgres_programs

# The first connection, which counts the branches and looks for partitions: a log-in and two queries.
_PREPARATION = 3


def initialize(server: Postgres, scale: int = 1) -> None:
    """Fills pgbench's tables."""
    _pgbench(server, ["-i", "-q", "-s", scale])


def pgbench(server: Postgres, transactions: int = 2003, connections: int = 8, host=None) -> Counted:
    """One SELECT a transaction, `transactions` on each connection; `host` may be the unix socket's directory."""
    report = _pgbench(server, ["-S", "-n", "-c", connections, "-j", 2, "-t", transactions], host)
    return parse(report, connections)


def pgbench_latencies(server: Postgres, transactions: int, connections: int, prefix=()) -> list[float]:
    """Seconds from sending a SELECT to its result, of every transaction, as pgbench logs them."""
    with tempfile.TemporaryDirectory(prefix="tacho-pgbench-") as directory:
        log = pathlib.Path(directory) / "log"
        _pgbench(
            server,
            ["-S", "-n", "-c", connections, "-t", transactions, "-l", "--log-prefix", log],
            prefix=prefix,
        )
        # client_id transaction_no time script_no time_epoch time_us
        lines = [line for file in log.parent.iterdir() for line in file.read_text().splitlines()]
    return [int(line.split()[2]) * 1e-6 for line in lines]


def parse(report: str, connections: int) -> Counted:
    done = find(r"^number of transactions actually processed: (\d+)/", report, "pgbench")
    find(r"^number of failed transactions: 0 ", report, "pgbench")
    rate = find(r"^tps = ([\d.]+) ", report, "pgbench")
    extra = connections + _PREPARATION  # one reply to the start-up message of each: no password, no TLS
    return Counted(
        client="pgbench -S",
        requests=int(done[1]),
        seconds=int(done[1]) / float(rate[1]),
        least_extra=extra,
        most_extra=extra,
        extra="log-ins, 2 queries",
    )


def _pgbench(server: Postgres, arguments, host=None, prefix=()) -> str:
    where = ["-h", host or "127.0.0.1", "-p", server.port]
    command = [postgres_programs() / "pgbench", *where, *arguments]
    return run(command, env=server.environment, timeout=120, prefix=prefix)
