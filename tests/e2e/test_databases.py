"""Databases on both of their sockets, under their own load tools."""

import pytest

from support.clients import mariadb_slap, pgbench
from support.clients.pgbench import initialize
from support.servers import MariaDB, Postgres
from support.tacho import Tacho, target


def test_postgresql_on_a_unix_socket(cgroups, agree):
    group = cgroups("postgres")
    with Postgres(group.prefix) as server, Tacho({"targets": [target("postgres", group.path)]}) as tacho:
        initialize(server)
        with tacho.watch("postgres") as change:
            counted = pgbench(server, transactions=1009, connections=8, host=server.directory)
        agree("PostgreSQL, unix socket", counted, change)
        assert change.of("tacho_connections_total", role="server") == 0, "unix sockets are not in the connections"


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
