"""HTTP/2 under TLS is told from HTTP/1.1 under TLS, where nothing but records is seen."""

import contextlib
import dataclasses
import ssl

import pytest

from support.certificate import self_signed
from support.clients import Counted, ab
from support.clients.curl import curl_times
from support.clients.h2load import h2load
from support.clients.tls import TlsConnection, context
from support.servers import Apache, Caddy, HAProxy, Nginx, NodeTls, Script
from support.slow import SKIPPED, slow_but
from support.tacho import Tacho, target
from support.waiting import wait_until

WINDOW = {"window": "2s", "histograms": {"buckets_per_octave": 4}}
CONNECTIONS = 4
# At each of six servers.
MANY_CONNECTIONS = 500 if SKIPPED else 5000


def apache(prefix):
    return Apache(prefix, model="event", http2=True)


@contextlib.contextmanager
def haproxy(prefix):
    with Nginx() as back, HAProxy(back.address, prefix, http2=True) as front:
        yield front


SERVERS = {
    "nginx 1.3": lambda prefix: Nginx(prefix, tls="TLSv1.3", tls_options="http2"),
    "nginx 1.2": lambda prefix: Nginx(prefix, tls="TLSv1.2", tls_options="http2"),
    "apache": apache,
    "caddy": Caddy,
    "haproxy": haproxy,
    "node": NodeTls,
}


def http1_habits(server) -> int:
    """Whatever clients do over HTTP/1.1 under TLS. Returns how many requests that were."""
    url = server.tls_url("/static")
    # Kept connections, a connection for each, some at once.
    done = len(curl_times(url, 20, http="--http1.1"))
    done += ab(url, 101, connections=10).requests
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        with contextlib.suppress(ssl.SSLError):
            done += resumed(server.tls_port, context(version))
    return done


def resumed(port: int, made: ssl.SSLContext) -> int:
    """Five sessions, each of the one before."""
    session = None
    for _ in range(5):
        with TlsConnection(port, made, session) as connection:
            connection.ask(b"GET /static HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            session = connection.secured.session
    return 5


def condition(tacho) -> float:
    return tacho.scrape().get("tacho_target_condition", target="server", condition="multiplexed")


@pytest.mark.parametrize("name", SERVERS)
def test_several_streams_raise_the_condition_and_http1_does_not(cgroups, agree, name):
    group = cgroups("server")
    with SERVERS[name](group.prefix) as server, Tacho({"targets": [target("server", group.path)], **WINDOW}) as tacho:
        with tacho.watch("server") as change:
            counted = ab(server.tls_url("/static"), 503, connections=CONNECTIONS, keep_alive=True)
            others = http1_habits(server)
            counted = dataclasses.replace(counted, requests=counted.requests + others)
        agree(f"{name}, HTTP/1.1 under TLS", counted, change)
        assert change.of("tacho_multiplexed_connections_total") == 0
        assert condition(tacho) == 0
        with tacho.watch("server") as change:
            h2load(server.tls_url("/static"), requests=5003, connections=CONNECTIONS, streams=10)
        wait_until(lambda: condition(tacho) == 1, 4, "the condition")
        assert change.of("tacho_multiplexed_connections_total") == CONNECTIONS
        assert change.requests < 5003


def test_serial_requests_are_counted(cgroups):
    """Half a second apart: acknowledged settings are nobody's request."""
    group = cgroups("server")
    with SERVERS["nginx 1.3"](group.prefix) as server, Tacho({"targets": [target("server", group.path)]}) as tacho:
        with tacho.watch("server") as change:
            times = curl_times([server.tls_url("/static")], 8, http="--http2", a_minute=90)
        assert change.requests == len(times)


def http2_connection(port: int) -> TlsConnection:
    """Preface and settings are sent, and the server's settings acknowledged."""
    made = context()
    made.set_alpn_protocols(["h2"])
    connection = TlsConnection(port, made)
    connection.ask(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04\0" + bytes(4))
    connection.secured.sendall(bytes(3) + b"\x04\x01" + bytes(4))
    return connection


def http2_get(stream: int, path: bytes) -> bytes:
    """HEADERS that end the stream; the path is remembered (RFC 7541, 6.2.1), so that it is one byte the next time."""
    fields = b"\x82\x87" + (b"\x44" + bytes([len(path)]) + path if stream == 1 else b"\xbe") + b"\x01\x01a"
    return len(fields).to_bytes(3, "big") + b"\x01\x05" + stream.to_bytes(4, "big") + fields


def wait_for_stream_end(connection: TlsConnection) -> None:
    """Reads frames up to one that ends a stream (RFC 9113, 4.1)."""
    data = b""
    while True:
        while len(data) >= 9 and len(data) >= 9 + int.from_bytes(data[:3], "big"):
            kind, flags = data[3], data[4]
            data = data[9 + int.from_bytes(data[:3], "big") :]
            if kind in (0, 1) and flags & 1:
                return
        if not (more := connection.secured.recv(65536)):
            raise ConnectionError("the server closed the connection")
        data += more


@pytest.mark.parametrize("name", ["nginx 1.3", "nginx 1.2", "apache", "haproxy", "node"])
def test_settings_are_no_request(cgroups, agree, name):
    """A client that waits for the server's settings before it asks, and does not wait for the answer to its own."""
    group = cgroups("server")
    connections, requests = 23, 3
    with SERVERS[name](group.prefix) as server, Tacho({"targets": [target("server", group.path)], **WINDOW}) as tacho:
        with tacho.watch("server") as change:
            for _ in range(connections):
                with http2_connection(server.tls_port) as connection:
                    for number in range(requests):
                        connection.secured.sendall(http2_get(2 * number + 1, b"/static"))
                        wait_for_stream_end(connection)
        agree(f"{name}, serial requests over HTTP/2 behind the settings", Counted("ssl", connections * requests, 1), change)


@pytest.mark.parametrize("name", ["nginx 1.3", "nginx 1.2", "caddy", "node"])
def test_idle_connections_have_nothing_in_flight(name, cgroups):
    """What acknowledges settings and asks whether somebody is there is answered by nobody, or by no reply to a request."""
    group = cgroups("server")
    with SERVERS[name](group.prefix) as server, Tacho({"targets": [target("server", group.path)], **WINDOW}) as tacho:
        tacho.wait_for_target("server")
        with contextlib.ExitStack() as open_ones:
            for _ in range(3):
                connection = open_ones.enter_context(http2_connection(server.tls_port))
                connection.ask(http2_get(1, b"/static"))
                ping = (8).to_bytes(3, "big") + b"\x06\0" + bytes(4) + b"are you?"
                connection.ask(ping)
                connection.secured.sendall(bytes(3) + b"\x04\x01" + bytes(4))
            # After five seconds, and up to two visits of the sweep more.
            wait_until(lambda: tacho.scrape().get("tacho_requests_in_flight", target="server") == 0, 12, "the flight's end")
            assert tacho.scrape().get("tacho_requests_unanswered_total", target="server") == 0


@pytest.mark.parametrize("name", SERVERS)
def test_thousands_of_connections_of_http1_raise_nothing(cgroups, agree, name):
    """A connection for each request, under the versions and with the requests of HTTP/1.1 that the server knows."""
    group = cgroups("server")
    with SERVERS[name](group.prefix) as server, Tacho({"targets": [target("server", group.path)], **WINDOW}) as tacho:
        done = 0
        with tacho.watch("server") as change:
            while done < MANY_CONNECTIONS:
                part = ab(server.tls_url("/static"), 503, connections=10)
                done += part.requests
                # What is told of the last two seconds.
                assert condition(tacho) == 0, f"after {done} connections"
        agree(f"{name}, a connection of HTTP/1.1 under TLS for each request", Counted("ab", done, 1), change)
        assert change.of("tacho_connections_total", role="server") >= MANY_CONNECTIONS
        assert change.of("tacho_multiplexed_connections_total") == 0


def websocket(port: int, messages: int) -> int:
    """Upgrades a connection under TLS and talks over it, one message at a time. Returns how many turns that were."""
    ask = b"GET /socket HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    with TlsConnection(port) as connection:
        connection.ask(ask)
        for number in range(messages):
            # A text frame of the client's is masked; all of it fits into one record.
            connection.ask(b"\x81\x85" + bytes(4) + b"%05d" % number)
    return 1 + messages


def test_http1_habits_of_one_server_are_no_multiplexing(cgroups, agree):
    """Large uploads and downloads, 100-continue, WebSockets: none is several requests at a time."""
    group = cgroups("server")
    size = 16 << 20
    with Script("upgraded.py") as back:
        locations = f"""
        location /upload {{ client_max_body_size 1g; proxy_pass http://{back.address}; }}
        location /socket {{
            proxy_pass http://{back.address};
            proxy_http_version 1.1;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection upgrade;
        }}"""
        with (
            Nginx(group.prefix, tls="TLSv1.2 TLSv1.3", locations=locations) as server,
            Tacho({"targets": [target("server", group.path)], **WINDOW}) as tacho,
        ):
            (server.directory / "large").write_bytes(bytes(size))
            with tacho.watch("server") as change:
                requests = len(curl_times(server.tls_url("/large"), 5, http="--http1.1"))
                upload = ["--data-binary", f"@{server.directory / 'large'}"]
                requests += len(curl_times(server.tls_url("/upload"), 5, "--http1.1", more=[*upload, "--header", "Expect:"]))
                requests += len(curl_times(server.tls_url("/upload"), 5, "--http1.1", more=upload))
                requests += websocket(server.tls_port, 101)
            agree("nginx under TLS, other habits of HTTP/1.1", Counted("curl, ssl", requests, 1), change)
            assert change.of("tacho_multiplexed_connections_total") == 0
            assert condition(tacho) == 0


@pytest.mark.parametrize("version", slow_but(("TLSv1.3",), ("TLSv1.2", "TLSv1.3"), "the older version"))
@pytest.mark.parametrize("shown", slow_but((True,), (True, False), "certificates that are asked for in vain"))
def test_client_certificates_are_no_multiplexing(cgroups, agree, version, shown):
    """Under TLS 1.3 the flight that brings one is longer than others, and of several records, as several streams would send
    them; and a request may come right behind it."""
    group = cgroups("server")
    with (
        Nginx(group.prefix, tls=version, locations="ssl_verify_client optional_no_ca;") as server,
        Tacho({"targets": [target("server", group.path)], **WINDOW}) as tacho,
    ):
        made = context()
        if shown:
            made.load_cert_chain(*self_signed(server.directory))
        connections, requests = 23, 3
        with tacho.watch("server") as change:
            for _ in range(connections):
                with TlsConnection(server.tls_port, made) as connection:
                    for _ in range(requests):
                        connection.ask(b"GET /return HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        agree(f"nginx, client certificates, {version}", Counted("ssl", connections * requests, 1), change)
        assert change.of("tacho_multiplexed_connections_total") == 0
        assert condition(tacho) == 0
