"""pgbench, PostgreSQL's own load generator."""

import pathlib
import tempfile
import time

from support.clients.counted import Counted, find
from support.clients.open_loop import Burst
from support.process import Process, run
from support.servers.postgres import Postgres, postgres_programs

# The first connection, which counts the branches and looks for partitions: a log-in and two queries.
_PREPARATION = 3


def initialize(server: Postgres, scale: int = 1) -> None:
    """Fills pgbench's tables."""
    _pgbench(server, ["-i", "-q", "-s", scale])


def pgbench(server: Postgres, transactions: int = 2003, connections: int = 8, host=None) -> Counted:
    """One SELECT a transaction, `transactions` on each connection; `host` may be the unix socket's directory."""
    report = _pgbench(server, ["-S", "-n", "-c", connections, "-j", 2, "-t", transactions], host)
    return parse(report, connections, wishes=connections + 1 if server.tls else 0)


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


def parse(report: str, connections: int, wishes: int = 0) -> Counted:
    """`wishes`: for TLS, each of which gets a reply before it."""
    done = find(r"^number of transactions actually processed: (\d+)/", report, "pgbench")
    find(r"^number of failed transactions: 0 ", report, "pgbench")
    rate = find(r"^tps = ([\d.]+) ", report, "pgbench")
    extra = connections + _PREPARATION + wishes  # one reply to the start-up message of each: no password
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


class PgbenchRate:
    """pgbench as an open-loop client: `-R` starts transactions on the schedule of a Poisson process.

    It connects for each burst. Its log has every transaction's latency from when it was due, and how much of it was lag.
    """

    timeline_bin = 0.01

    def __init__(self, server: Postgres, script=("-b", "tpcb-like"), connections: int = 8, prefix=()):
        self._server, self._script, self._connections, self._prefix = server, script, connections, prefix
        self.extra_turns = connections + _PREPARATION
        self._process = None

    def start(self, rate: float, seconds: float, seed: int) -> None:
        self._rate, self._seconds = rate, seconds
        self._directory = tempfile.TemporaryDirectory(prefix="tacho-pgbench-")
        command = [
            postgres_programs() / "pgbench", "-h", "127.0.0.1", "-p", self._server.port, "-n", *self._script,
            "-c", self._connections, "-T", max(1, round(seconds)), f"--random-seed={seed}", *(["-R", rate] if rate else []),
            "-l", "--log-prefix", pathlib.Path(self._directory.name) / "log",
        ]  # fmt: skip
        self._to_monotonic = time.monotonic() - time.time()
        self._process = Process(command, env=self._server.environment, prefix=self._prefix)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._process:
            self._process.__exit__(*error)
            self._directory.cleanup()

    def result(self, timeout: float) -> Burst:
        if self._process.wait(timeout) != 0:
            raise RuntimeError(f"pgbench failed:\n{self._process.output}")
        find(r"^number of failed transactions: 0 ", self._process.output, "pgbench")
        with self._directory as directory:
            # client_id transaction_no time script_no time_epoch time_us [schedule_lag]
            rows = [line.split() for file in pathlib.Path(directory).iterdir() for line in file.read_text().splitlines()]
        rows.sort(key=lambda row: (int(row[4]), int(row[5])))
        ends = [int(row[4]) + int(row[5]) * 1e-6 + self._to_monotonic for row in rows]
        latencies = [int(row[2]) * 1e-6 for row in rows]
        lags = [int(row[6]) * 1e-6 if self._rate else 0.0 for row in rows]
        started = ends[0] - latencies[0]
        timeline = [0] * (int((ends[-1] - started) / self.timeline_bin) + 1)
        for end in ends:
            timeline[int((end - started) / self.timeline_bin)] += 1
        return Burst(
            started=started,
            elapsed=ends[-1] - started,
            # What was due and not begun when time was up does not appear in the log.
            offered=len(rows) + round(self._rate * lags[-1]),
            sent=len(rows),
            completed=len(rows),
            errors=0,
            dropped=0,
            latency=summary(latencies),
            round_trip=summary([latency - lag for latency, lag in zip(latencies, lags)]),
            timeline=timeline,
            timeline_bin=self.timeline_bin,
        )

    def run(self, rate: float, seconds: float, seed: int = 1) -> Burst:
        self.start(rate, seconds, seed)
        return self.result(10 * seconds + 30)


def summary(times: list[float]) -> dict:
    """Mean, p50, p90, p99 and max, as the open-loop client gives them."""
    ordered = sorted(times)
    return {
        "mean": sum(ordered) / len(ordered),
        **{f"p{percent}": ordered[len(ordered) * percent // 100] for percent in (50, 90, 99)},
        "max": ordered[-1],
    }
