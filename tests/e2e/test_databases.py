"""Databases on both of their sockets, under their own load tools."""

import pytest

from support.clients import Counted, mariadb_slap, pgbench
from support.clients.pgbench import initialize
from support.clients.postgres import PostgresClient
from support.process import run
from support.servers import MariaDB, Postgres
from support.servers.postgres import postgres_programs
from support.tacho import Tacho, target
from support.waiting import wait_until


def test_postgresql_on_a_unix_socket(cgroups, agree):
    group = cgroups("postgres")
    with Postgres(group.prefix) as server, Tacho({"targets": [target("postgres", group.path)]}) as tacho:
        initialize(server)
        with tacho.watch("postgres") as change:
            counted = pgbench(server, transactions=1009, connections=8, host=server.directory)
        agree("PostgreSQL, unix socket", counted, change)
        assert change.of("tacho_connections_total", role="server") == 0, "unix sockets are not in the connections"


def test_postgresql_asks_for_a_password(cgroups, agree):
    """By SCRAM (RFC 5802), which takes the client three turns."""
    group = cgroups("postgres")
    with Postgres(group.prefix) as server, Tacho({"targets": [target("postgres", group.path)]}) as tacho:

        def log_in(**more: str) -> str:
            command = [postgres_programs() / "psql", "-w", "-h", "127.0.0.1", "-p", server.port, "-t", "-c", "SELECT 'let in'"]
            return run(command, env={**server.environment, **more}, check=False)

        with PostgresClient(server.port) as client:
            client.query("ALTER ROLE postgres PASSWORD 'secret'")
            (server.directory / "data" / "pg_hba.conf").write_text("host all all 127.0.0.1/32 scram-sha-256\n")
            client.query("SELECT pg_reload_conf()")
        wait_until(lambda: "let in" not in log_in(), 20, "the server asks for a password")
        with tacho.watch("postgres") as change:
            for _ in range(11):
                assert "let in" in log_in(PGPASSWORD="secret")
        agree("PostgreSQL, SCRAM", Counted("psql", 11 * (3 + 1), 1), change)


def test_postgresql_copies_what_a_client_sends(cgroups, agree):
    """The query is answered by the wish for the data, and the data by the end of the command: two turns."""
    copies = 11
    group = cgroups("postgres")
    with Postgres(group.prefix) as server, Tacho({"targets": [target("postgres", group.path)]}) as tacho:
        with tacho.watch("postgres") as change, PostgresClient(server.port) as client:
            client.query("CREATE TABLE copied (number int)")
            for _ in range(copies):
                client.copy("COPY copied FROM STDIN", b"7\n" * 5000, pieces=9)
            assert client.rows("SELECT count(*) FROM copied") == [str(copies * 9 * 5000)]
        agree("PostgreSQL, COPY", Counted("PostgresClient", PostgresClient.log_ins + 2 + 2 * copies, 1), change)
        assert change.of("tacho_oneway_messages_total") == 0


def test_postgresql_over_tls(cgroups, agree):
    """Each client asks in the clear whether it may, and the server says goodbye behind a message that has no reply."""
    group = cgroups("postgres")
    with Postgres(group.prefix, tls=True) as server, Tacho({"targets": [target("postgres", group.path)]}) as tacho:
        initialize(server)
        with tacho.watch("postgres") as change:
            counted = pgbench(server, transactions=251, connections=8)
        agree("PostgreSQL, TLS", counted, change)
        assert 9 <= change.of("tacho_handshakes_total") <= 2 * 9  # turns


def test_mariadb_over_tls(cgroups, agree):
    """The client's wish for TLS gets no reply: its hello follows at once."""
    group = cgroups("mariadb")
    with MariaDB(group.prefix, tls=True) as server, Tacho({"targets": [target("mariadb", group.path)]}) as tacho:
        with tacho.watch("mariadb") as change:
            counted = mariadb_slap(server)
        agree("MariaDB, TLS", counted, change)
        assert counted.least_extra <= change.of("tacho_handshakes_total") <= 2 * counted.least_extra  # turns


@pytest.mark.parametrize("unix", [False, True])
def test_mariadb(cgroups, agree, unix):
    """The server greets first; the answer is the log-in. At the end the client says goodbye and gets no reply."""
    group = cgroups("mariadb")
    with MariaDB(group.prefix) as server, Tacho({"targets": [target("mariadb", group.path)]}) as tacho:
        with tacho.watch("mariadb") as change:
            counted = mariadb_slap(server, unix=unix)
        agree(f"MariaDB, {'unix socket' if unix else 'TCP'}", counted, change)
        log_ins = counted.least_extra
        assert change.of("tacho_requests_unanswered_total") == (0 if unix else log_ins)
