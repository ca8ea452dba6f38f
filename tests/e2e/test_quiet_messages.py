"""Durations on connections that also carry what nobody answers, or that wait long before they are used: those of the client."""

import contextlib
import time

import pytest

from support.clients import Counted
from support.clients.mariadb_prepared import PreparedStatements
from support.clients.mqtt import MqttClient
from support.clients.nats import NatsClient
from support.clients.postgres import PostgresClient
from support.clients.resp import RespClient
from support.clients.tls import TlsConnection
from support.servers import Caddy, GnutlsServer, MariaDB, Mosquitto, NatsServer, Postgres, Redis, TlsWork
from support.durations import check_durations, durations
from support.slow import slow_but
from support.tacho import Tacho, target
from support.waiting import wait_until

# Longer than a message without a reply waits for more of itself (exporter/ARCHITECTURE.md, "When a request came").
PAUSE = 0.7
# What a request works for: so long that the way to the client and back is no more than its 15 %.
WORK = 0.02
# What each tenth works for: the 99th of 100.
LONG_WORK = 0.06


def work_of(number: int) -> float:
    return LONG_WORK if number % 10 == 9 else WORK


# So many microseconds, and then it writes, in Lua.
WORKS = (
    "local function now() local t = redis.call('TIME') return t[1] * 1000000 + t[2] end "
    "local until_then = now() + ARGV[1] "
    "while now() < until_then do end "
    "return redis.call('INCR', KEYS[1])"
)


@contextlib.contextmanager
def observed(cgroups, start):
    """Yields (server, change)."""
    group = cgroups("quiet")
    with start(group.prefix) as server, Tacho({"targets": [target("quiet", group.path)]}) as tacho:
        with tacho.watch("quiet") as change, durations(tacho, "quiet", change):
            yield server, change


def test_prepared_statements(cgroups, agree):
    """Each is prepared, executed and closed; nobody answers the last."""
    times = []
    with observed(cgroups, MariaDB) as (server, change):
        with PreparedStatements(server.port) as client:
            # 790 bytes, as MariaDB writes it (0x16 0x03 0x00): so begins a handshake of TLS.
            client.query(f"SELECT 1 /*{' ' * 776}*/")
            for number in range(41):
                times += client.once(f"SELECT SLEEP({work_of(number)})")
                if number % 10 == 9:
                    time.sleep(PAUSE)
    agree("MariaDB, prepared statements", Counted("libmariadb", PreparedStatements.log_ins + 1 + len(times), 1), change)
    # After each of the pauses one has been closed without a reply, and quitting has none either.
    assert change.of("tacho_oneway_messages_total") == 4
    assert change.of("tacho_requests_unanswered_total") == 1
    check_durations("MariaDB, prepared statements", change, times, known=LONG_WORK, quantiles=(0.75, 0.99))


def test_redis_with_a_replica(cgroups, agree):
    """It acknowledges once a second; what it is sent next does not answer that."""
    group = cgroups("replicated")
    config = {"targets": [target("replicated", group.path)]}
    with Redis(group.prefix) as server, Tacho(config) as tacho, Redis(primary_port=server.port) as replica:
        wait_until(lambda: replica.info("replication")["master_link_status"] == "up", 10, "the replica follows")
        with RespClient(server.port) as client, tacho.watch("replicated") as change, durations(tacho, "replicated", change):
            times = []
            for number in range(101):
                times.append(client.command(f'EVAL "{WORKS}" 1 key {work_of(number) * 1e6:.0f}'))
                time.sleep(0.01)
    agree("redis with a replica", Counted("socket", len(times), 1), change)
    check_durations("redis with a replica", change, times, known=LONG_WORK)


def test_postgresql_with_a_standby(cgroups, agree):
    """It says how far it has come after each piece of the log; the next piece does not answer that."""
    group = cgroups("replicated")
    config = {"targets": [target("replicated", group.path)]}
    with Postgres(group.prefix) as server, Tacho(config) as tacho, Postgres(primary_port=server.port):
        with PostgresClient(server.port) as client:
            client.query("CREATE TABLE t (n int)")
            state = "SELECT state FROM pg_stat_replication"
            wait_until(lambda: client.rows(state) == ["streaming"], 10, "the standby follows")
            with tacho.watch("replicated") as change, durations(tacho, "replicated", change):
                times = []
                for number in range(61):
                    times.append(client.query(f"INSERT INTO t SELECT {number} FROM pg_sleep({work_of(number)})"))
                    if number % 20 == 19:
                        time.sleep(PAUSE)
        agree("PostgreSQL with a standby", Counted("socket", len(times), 1), change)
    check_durations("PostgreSQL with a standby", change, times, known=LONG_WORK)


def words(number: int) -> bytes:
    """TlsWork works as long for each."""
    return b"ask " * round(work_of(number) / WORK)


# How each is started, what it is asked, and what it is known to work for each tenth: nothing, where a client takes longer to
# read the answer than the server to write it.
SERVERS = {
    "no ticket": (lambda prefix: TlsWork(prefix, WORK), words, LONG_WORK),
    "tickets after the handshake": (lambda prefix: TlsWork(prefix, WORK, tickets=2), words, LONG_WORK),
    "GnuTLS": (GnutlsServer, lambda _: b"GET / HTTP/1.0\r\n\r\n", 0),
    "Go": (Caddy, lambda _: b"GET /static HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 0),
}


@pytest.mark.parametrize("name", slow_but(("no ticket", "Go"), SERVERS, "more servers"))
def test_connections_that_were_made_long_before(cgroups, agree, name):
    """The client's last flight is answered by tickets, or by nothing; its first request comes a second later."""
    start, request, known = SERVERS[name]
    with observed(cgroups, start) as (server, change):
        port = getattr(server, "tls_port", server.port)
        with contextlib.ExitStack() as stack:
            warm = [stack.enter_context(TlsConnection(port)) for _ in range(16)]
            time.sleep(PAUSE + 0.5)
            times = [connection.ask(request(number)) for number, connection in enumerate(warm)]
    agree(f"{name}, connections made long before", Counted("ssl", len(times), 1), change)
    check_durations(f"{name}, connections made long before", change, times, works=known > 0, known=known)


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


def test_what_mqtt_carries_to_and_fro_is_no_request(cgroups, agree):
    """One asks and another one answers, by messages that nobody acknowledges: neither is a request to the broker."""
    with observed(cgroups, Mosquitto) as (server, change):
        with MqttClient(server.port, "service") as service, MqttClient(server.port, "client") as client:
            service.subscribe("question", 0)
            client.subscribe("answer", 0)
            for number in range(51):
                client.tell("question", b"%d" % number)
                service.tell("answer", service.hear())
                assert client.hear() == b"%d" % number
                time.sleep(0.01)
    agree("mosquitto, question and answer", Counted("socket", 4, 1), change)
    assert change.of("tacho_request_duration_seconds_sum") < 0.05


def test_what_a_service_of_nats_answers_is_no_request(cgroups, agree):
    """What a client asks of it through the server is one. The server answers that by what the service says."""
    with observed(cgroups, NatsServer) as (server, change):
        with NatsClient(server.port) as service, NatsClient(server.port) as client:
            service.subscribe("service")
            client.subscribe("_INBOX.client")
            for number in range(101):
                if number % 50 == 49:
                    time.sleep(PAUSE)
                client.publish("service", b"%d" % number, reply_to="_INBOX.client")
                reply_to, message = service.take()
                service.publish(reply_to, message)
                assert client.take() == ("", b"%d" % number)
    # Two connect, both subscribe.
    agree("nats-server", Counted("socket", 4 + 101, 1), change)
    assert change.of("tacho_request_duration_seconds_sum") < PAUSE


def test_a_sign_of_life_is_no_request(cgroups, agree):
    """nats-server asks for one at its leisure; its next question does not answer that."""
    with observed(cgroups, NatsServer) as (server, change):
        with NatsClient(server.port) as client:
            client.live_for(3)
    agree("nats-server, idle", Counted("socket", 1, 1), change)
    assert change.of("tacho_request_duration_seconds_sum") < NatsServer.PING_INTERVAL
