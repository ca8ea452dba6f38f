"""How clients leave: with TLS' goodbye, by a reset, in the middle of a body. Answered is what was answered, and nothing is left open."""

import contextlib
import select
import socket
import ssl
import struct
import time

import pytest

from support.clients import Counted, ab
from support.clients.tls import TlsConnection, context
from support.servers import Apache, Caddy, ExactServer, GnutlsServer, Gunicorn, Nginx, NodeTls, TlsWork
from support.slow import slow_but
from support.tacho import Tacho, target
from support.waiting import wait_until

CONNECTIONS = 101
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
GET = b"GET /static HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
# Answered in one piece: who says goodbye in the middle of a reply is owed the rest.
SHORT_GET = GET.replace(b"/static", b"/return")


def apache(prefix, **options):
    return Apache(prefix, model="event", http2=True, **options)


TLS_SERVERS = {
    "nginx": (lambda prefix: Nginx(prefix, tls="TLSv1.2 TLSv1.3"), GET),
    "apache": (apache, GET),
    "caddy": (Caddy, SHORT_GET),
    "node": (NodeTls, GET),
    "python": (lambda prefix: TlsWork(prefix, work=0), b"ask\n"),
    "gnutls": (GnutlsServer, GET),
}


MORE_SERVERS = "more servers"


def tls_port(server) -> int:
    return getattr(server, "tls_port", server.port)


@contextlib.contextmanager
def observed(cgroups, start):
    group = cgroups("ends")
    with start(group.prefix) as server, Tacho({"targets": [target("ends", group.path)]}) as tacho:
        with tacho.watch("ends") as change:
            yield server, change
            wait_until(
                lambda: tacho.scrape().get("tacho_connections_active", target="ends", role="server") == 0, 10, "all have ended"
            )


def check(agree, what, change, requests, unanswered=(0,)):
    agree(what, Counted("socket", requests, 1), change)
    assert change.of("tacho_requests_unanswered_total") in unanswered
    assert change.of("tacho_oneway_messages_total") == 0
    assert change.after.get("tacho_requests_in_flight", target="ends") == 0


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


@pytest.mark.parametrize("name", slow_but(("nginx", "caddy"), TLS_SERVERS, MORE_SERVERS))
def test_a_goodbye_is_no_request(cgroups, agree, name):
    """The client says it first and hears the server's; or asks and says it in one breath; or says it without having asked."""
    start, request = TLS_SERVERS[name]
    requests = 0
    with observed(cgroups, start) as (server, change):
        for version in VERSIONS.values():
            for asked in (0, 1, 1, 2):
                if name == "gnutls" and asked > 1:
                    continue  # It closes the connection itself.
                connection = TlsConnection(tls_port(server), context(version))
                for _ in range(asked):
                    connection.ask(request)
                requests += asked
                connection.say_goodbye()
    check(agree, f"{name}, goodbyes", change, requests)


@pytest.mark.parametrize("name", slow_but(("apache",), ("apache", "caddy", "node"), MORE_SERVERS))
def test_a_tls_connection_for_each_request(cgroups, agree, name):
    with observed(cgroups, TLS_SERVERS[name][0]) as (server, change):
        counted = [ab(server.tls_url("/static"), CONNECTIONS, tls=f"TLS{version}") for version in VERSIONS]
    check(agree, f"{name}, a TLS connection for each request", change, sum(part.requests for part in counted))


@pytest.mark.parametrize("tls", [False, True], ids=["clear", "TLS"])
@pytest.mark.parametrize("name", slow_but(("apache",), ("apache", "caddy", "nginx"), MORE_SERVERS))
def test_clients_that_reset(cgroups, agree, name, tls):
    """Some right after the reply, some with the reply unread in their buffers."""
    with observed(cgroups, TLS_SERVERS[name][0]) as (server, change):
        for number in range(CONNECTIONS):
            if tls:
                connection = TlsConnection(server.tls_port).secured
            else:
                connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
            connection.sendall(GET)
            if tls or number % 2:
                connection.recv(1)
            else:
                select.select([connection], [], [], 20)
            reset(connection)
    check(agree, "clients that reset", change, CONNECTIONS)


REFUSING = {
    "nginx": lambda prefix: Nginx(prefix, locations="location /small { client_max_body_size 1k; return 200; }"),
    "apache": lambda prefix: Apache(prefix, model="event", more="LimitRequestBody 1024"),
}


@pytest.mark.parametrize("name", REFUSING)
def test_an_upload_that_is_refused_is_one_request(cgroups, agree, name):
    """The reply comes before the end of the body. nginx reads on before it closes the connection: that has no reply."""
    body = 4 << 20
    head = f"POST /small HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {body}\r\n\r\n".encode()
    with observed(cgroups, REFUSING[name]) as (server, change):
        for _ in range(23):
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client, contextlib.suppress(ConnectionError):
                client.sendall(head)
                for _ in range(body >> 16):
                    client.sendall(bytes(1 << 16))
                while client.recv(1 << 16):
                    pass
    check(agree, f"{name}, refused uploads", change, 23, range(24) if name == "nginx" else (0,))


def test_a_reply_that_is_being_sent_when_the_client_resets(cgroups, agree):
    """One blocking send of more than any buffer holds."""
    with observed(cgroups, lambda prefix: Gunicorn(prefix, workers=1, module="download")) as (server, change):
        for _ in range(23):
            client = socket.create_connection(("127.0.0.1", server.port), timeout=20)
            client.sendall(b"GET /32768 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            client.recv(4096)
            reset(client)
    check(agree, "gunicorn, resets in the middle of a reply", change, 23)


def test_a_reply_that_is_slow_to_finish_is_not_slow_to_begin(cgroups, agree):
    """One blocking send, while the client takes its time."""
    reply, pause = 32 << 20, 1
    with observed(cgroups, lambda prefix: ExactServer(prefix, mode="threads", reply_bytes=reply)) as (server, change):
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
            client.sendall(bytes(64))
            select.select([client], [], [], 20)
            time.sleep(pause)
            while reply > 0:
                reply -= len(client.recv(1 << 20))
    check(agree, "a slow client", change, 1)
    assert change.of("tacho_request_duration_seconds_sum") < 0.5 * pause
