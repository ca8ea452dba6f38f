"""Durations on connections that also carry what nobody answers, or that wait long before they are used: those of the client."""

import contextlib
import statistics
import time

import pytest

from support import ledger
from support.clients import Counted
from support.clients.mariadb_prepared import PreparedStatements
from support.clients.mqtt import MqttClient
from support.clients.postgres import PostgresClient
from support.clients.resp import RespClient
from support.clients.tls import TlsConnection
from support.servers import Caddy, GnutlsServer, MariaDB, Mosquitto, Postgres, Redis, TlsWork
from support.slow import slow_but
from support.tacho import Tacho, target
from support.waiting import wait_until

# A quantile's place in its bucket is not known: with four buckets an octave they are 19 % wide.
BUCKET = 1.19
HISTOGRAMS = {"histograms": {"buckets_per_octave": 4}}
# Longer than a message without a reply waits for more of itself (exporter/ARCHITECTURE.md, "When a request came").
PAUSE = 0.7
# What a request works for: so long that the way to the client and back is no more than its 15 %.
WORK = 0.02


@contextlib.contextmanager
def observed(cgroups, start, **change_labels):
    """Yields (server, change)."""
    group = cgroups("quiet")
    with start(group.prefix) as server, Tacho({"targets": [target("quiet", group.path)], **HISTOGRAMS}) as tacho:
        tacho.wait_for_target("quiet")
        with tacho.watch("quiet", **change_labels) as change:
            yield server, change


def check_durations(what: str, change, times, works: bool = True) -> None:
    """The 99th of 100 within 15 % and 100 µs of the client's.

    The client's also holds its own waits for a CPU: where it had such, or where the server `works` for no longer than a
    client takes to read an answer, tacho's may be less. Then at least the medians are as near, if the server works.
    """
    near, lines = {}, []
    for q in (0.5, 0.99):
        tacho = change.quantile("tacho_request_duration_seconds", q)
        client = statistics.quantiles(times, n=100, method="inclusive")[round(100 * q) - 1]
        lines.append(f"{what}, p{100 * q:.0f}: client {client * 1e6:.0f} µs, tacho {tacho * 1e6:.0f} µs")
        ledger.note(lines[-1])
        near[q] = client <= 1.15 * BUCKET * tacho + 100e-6
    assert tacho <= 1.15 * BUCKET * client + 100e-6, lines
    assert any(near.values()) or not works, lines


def test_prepared_statements(cgroups, agree):
    """Each is prepared, executed and closed; nobody answers the last."""
    times = []
    with observed(cgroups, MariaDB) as (server, change):
        with PreparedStatements(server.port) as client:
            # 790 bytes, as MariaDB writes it (0x16 0x03 0x00): so begins a handshake of TLS.
            client.query(f"SELECT 1 /*{' ' * 776}*/")
            for number in range(41):
                times += client.once(f"SELECT SLEEP({WORK})")
                if number % 10 == 9:
                    time.sleep(PAUSE)
    agree("MariaDB, prepared statements", Counted("libmariadb", PreparedStatements.log_ins + 1 + len(times), 1), change)
    # After each of the pauses one has been closed without a reply, and quitting has none either.
    assert change.of("tacho_oneway_messages_total") == 4
    assert change.of("tacho_requests_unanswered_total") == 1
    check_durations("MariaDB, prepared statements", change, times)


def test_redis_with_a_replica(cgroups, agree):
    """It acknowledges once a second; what it is sent next does not answer that."""
    group = cgroups("replicated")
    config = {"targets": [target("replicated", group.path)], **HISTOGRAMS}
    with Redis(group.prefix) as server, Tacho(config) as tacho, Redis(primary_port=server.port) as replica:
        wait_until(lambda: replica.info("replication")["master_link_status"] == "up", 10, "the replica follows")
        with RespClient(server.port) as client, tacho.watch("replicated") as change:
            times = []
            for number in range(301):
                times.append(client.command(f"SET key {number}"))
                time.sleep(0.01)
    agree("redis with a replica", Counted("socket", len(times), 1), change)
    check_durations("redis with a replica", change, times, works=False)


def test_postgresql_with_a_standby(cgroups, agree):
    """It says how far it has come after each piece of the log; the next piece does not answer that."""
    group = cgroups("replicated")
    config = {"targets": [target("replicated", group.path)], **HISTOGRAMS}
    with Postgres(group.prefix) as server, Tacho(config) as tacho, Postgres(primary_port=server.port):
        with PostgresClient(server.port) as client:
            client.query("CREATE TABLE t (n int)")
            state = "SELECT state FROM pg_stat_replication"
            wait_until(lambda: client.rows(state) == ["streaming"], 10, "the standby follows")
            with tacho.watch("replicated") as change:
                times = []
                for number in range(61):
                    times.append(client.query(f"INSERT INTO t SELECT {number} FROM pg_sleep({WORK})"))
                    if number % 20 == 19:
                        time.sleep(PAUSE)
        agree("PostgreSQL with a standby", Counted("socket", len(times), 1), change)
    check_durations("PostgreSQL with a standby", change, times)


SERVERS = {
    "no ticket": (lambda prefix: TlsWork(prefix, WORK), b"ask\n"),
    "tickets after the handshake": (lambda prefix: TlsWork(prefix, WORK, tickets=2), b"ask\n"),
    "GnuTLS": (GnutlsServer, b"GET / HTTP/1.0\r\n\r\n"),
    "Go": (Caddy, b"GET /static HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
}


@pytest.mark.parametrize("name", slow_but(("no ticket", "Go"), SERVERS, "more servers"))
def test_connections_that_were_made_long_before(cgroups, agree, name):
    """The client's last flight is answered by tickets, or by nothing; its first request comes a second later."""
    start, request_line = SERVERS[name]
    with observed(cgroups, start) as (server, change):
        port = getattr(server, "tls_port", server.port)
        with contextlib.ExitStack() as stack:
            warm = [stack.enter_context(TlsConnection(port)) for _ in range(16)]
            time.sleep(PAUSE + 0.5)
            times = [connection.ask(request_line) for connection in warm]
    agree(f"{name}, connections made long before", Counted("ssl", len(times), 1), change)
    check_durations(f"{name}, connections made long before", change, times, works=start not in (GnutlsServer, Caddy))


def test_what_a_broker_delivers_answers_no_acknowledgement(cgroups, agree):
    """A subscriber of MQTT acknowledges each message as it comes; the next one comes when somebody publishes it."""
    messages = 101
    with observed(cgroups, Mosquitto) as (server, change):
        with MqttClient(server.port, "subscriber") as subscriber, MqttClient(server.port, "publisher") as publisher:
            subscriber.subscribe("news")
            for number in range(messages):
                if number % 50 == 49:
                    time.sleep(PAUSE)
                publisher.publish("news", b"%d" % number)
                assert subscriber.take() == b"%d" % number
    # Two connect, one subscribes.
    agree("mosquitto", Counted("socket", 3 + messages, 1), change)
    # Two in one read are one, where the next message is published before the broker has read what acknowledges the last one.
    assert messages // 2 <= change.of("tacho_oneway_messages_total") < messages
    assert change.of("tacho_request_duration_seconds_sum") < PAUSE
