"""mariadb-slap, MariaDB's load generator."""

from support.clients.counted import Counted, find
from support.process import run
from support.servers.mariadb import MariaDB


def mariadb_slap(server: MariaDB, queries: int = 2000, connections: int = 4, unix: bool = False) -> Counted:
    """SELECT 1, `queries` times in all, a multiple of `connections`."""
    where = ["-S", server.unix_socket] if unix else ["-h", "127.0.0.1", "-P", server.port]
    report = run([
        "mariadb-slap", "--no-defaults", "--user=root", *where, "--create-schema=mysql", "--no-drop", "--delimiter=;",
        "--query=SELECT 1", f"--concurrency={connections}", f"--number-of-queries={queries}", "--ssl" if server.tls else "--skip-ssl",
    ])  # fmt: skip
    return parse(report)


def parse(report: str) -> Counted:
    """A reply to the log-in of each connection; one more asks for nothing but that."""
    connections = int(find(r"^\tNumber of clients running queries: (\d+)$", report, "mariadb-slap")[1])
    queries = int(find(r"^\tAverage number of queries per client: (\d+)$", report, "mariadb-slap")[1])
    seconds = find(r"^\tAverage number of seconds to run all queries: ([\d.]+) seconds$", report, "mariadb-slap")
    return Counted(
        client="mariadb-slap",
        requests=connections * queries,
        seconds=float(seconds[1]),
        least_extra=connections + 1,
        most_extra=connections + 1,
        extra="log-ins",
    )
