"""Proxies and the servers behind them: requests that come in and calls that go out, each counted once, apart."""

import contextlib
import select

import pytest

from support.clients import Counted, ab, dnsperf
from support.clients.tls import TlsConnection
from support.servers import Dnsmasq, Gunicorn, HAProxy, Knot, Nginx
from support.slow import slow_but
from support.tacho import Tacho, target

REQUESTS = 1009


@contextlib.contextmanager
def observed(cgroups, upstream, proxy):
    """Both in cgroups of their own: upstream(prefix), proxy(prefix, upstream). Yields (proxy, upstream, changes by name)."""
    groups = {name: cgroups(name) for name in ("proxy", "upstream")}
    with (
        upstream(groups["upstream"].prefix) as back,
        proxy(groups["proxy"].prefix, back) as front,
        Tacho({"targets": [target(name, group.path) for name, group in groups.items()]}) as tacho,
        tacho.watch("proxy") as proxied,
        tacho.watch("upstream") as served,
    ):
        yield front, back, {"proxy": proxied, "upstream": served}


def calls_to(change) -> dict[str, float]:
    found = change.after.all("tacho_dependency_calls_total", target=change.target)
    return {labels["peer"]: calls for labels, calls in found if calls}


def assert_passed_on(changes, peer):
    """What the proxy asked the one peer for is what was asked of it and what that peer answered."""
    proxied, served = changes["proxy"], changes["upstream"]
    assert calls_to(proxied) == {peer: proxied.requests}
    assert calls_to(served) == {}
    assert served.requests == proxied.requests
    assert proxied.of("tacho_dependency_duration_seconds_sum", peer=peer) <= proxied.of("tacho_request_duration_seconds_sum")


def nginx_before(prefix, upstream: str, scheme: str = "http", connection: str = ""):
    """nginx that keeps connections to the upstream, HOST:PORT or unix:PATH, and passes on what is below /proxy/.

    With `connection` "close" it makes a new one for each request.
    """
    location = f"""location /proxy/ {{
            proxy_pass {scheme}://back/;
            proxy_http_version 1.1;
            proxy_ssl_protocols TLSv1.2 TLSv1.3;
            proxy_set_header Connection "{connection}";
        }}"""
    more = f"upstream back {{ server {upstream}; keepalive 32; keepalive_requests 1000000000; }}"
    return Nginx(prefix, workers=2, locations=location, more=more)


@pytest.mark.parametrize("path", ["/return", "/static"])
def test_nginx_before_nginx(cgroups, agree, path):
    with observed(cgroups, Nginx, lambda prefix, back: nginx_before(prefix, back.address)) as (front, back, changes):
        counted = ab(front.url(f"/proxy{path}"), REQUESTS, keep_alive=True)
    agree(f"nginx as proxy, {path}", counted, changes["proxy"])
    agree(f"nginx behind nginx, {path}", counted, changes["upstream"])
    assert_passed_on(changes, back.address)


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("connection", ["", "close"])
def test_nginx_before_nginx_under_tls(cgroups, agree, version, connection):
    """The handshakes that a client makes are no calls of it, the server's no requests."""

    def proxy(prefix, back):
        return nginx_before(prefix, f"127.0.0.1:{back.tls_port}", "https", connection)

    def upstream(prefix):
        return Nginx(prefix, tls=version)

    with observed(cgroups, upstream, proxy) as (front, back, changes):
        counted = ab(front.url("/proxy/return"), 503, keep_alive=True)
    how = f"{version}, {'connection per call' if connection else 'kept'}"
    agree(f"nginx as client, {how}", counted, changes["proxy"])
    agree(f"nginx behind nginx, {how}", counted, changes["upstream"])
    assert_passed_on(changes, f"127.0.0.1:{back.tls_port}")


@pytest.mark.parametrize("kind, workers", [("sync", 2), ("gthread", 1)])
def test_nginx_before_a_unix_socket(cgroups, agree, kind, workers):
    """As in front of php-fpm. sync closes each connection, gthread keeps them."""

    def application(prefix):
        return Gunicorn(prefix, kind=kind, workers=workers, unix=True)

    def proxy(prefix, back):
        return nginx_before(prefix, f"unix:{back.unix_socket}")

    with observed(cgroups, application, proxy) as (front, back, changes):
        counted = ab(front.url("/proxy/"), REQUESTS, keep_alive=True)
    agree(f"nginx before a unix socket, gunicorn {kind}", counted, changes["proxy"])
    agree(f"gunicorn {kind} on that unix socket", counted, changes["upstream"])
    assert_passed_on(changes, f"unix:{back.unix_socket}")


@pytest.mark.parametrize("options", ["", "option splice-response"])
def test_haproxy(cgroups, agree, options):
    """A reply of 256 KiB: header and beginning are received, the rest may go from socket to pipe to socket."""

    def upstream(prefix):
        back = Nginx(prefix)
        (back.directory / "large").write_bytes(b"x" * 262_144)
        return back

    with observed(cgroups, upstream, lambda prefix, back: HAProxy(back.address, prefix, options=options)) as (
        front,
        back,
        changes,
    ):
        counted = ab(front.url("/large"), 503, keep_alive=True)
    how = "splicing" if options else "copying"
    agree(f"HAProxy, {how}", counted, changes["proxy"])
    agree(f"nginx behind HAProxy, {how}", counted, changes["upstream"])
    assert_passed_on(changes, back.address)


@pytest.mark.parametrize("header", ["send-proxy", "send-proxy-v2"])
@pytest.mark.parametrize("version", slow_but(("TLSv1.3",), ("TLSv1.2", "TLSv1.3"), "the older version"))
def test_tls_behind_the_header_of_a_proxy(cgroups, agree, version, header):
    """The proxy does not look into it: the server reads first whom it speaks for, then the handshake."""

    def upstream(prefix):
        return Nginx(prefix, tls=version, tls_options="proxy_protocol")

    def proxy(prefix, back):
        return HAProxy(f"127.0.0.1:{back.tls_port} {header}", prefix, options="mode tcp")

    with observed(cgroups, upstream, proxy) as (front, back, changes):
        counted = ab(f"https://{front.address}/return", 211)
    agree(f"nginx behind {header}, {version}", counted, changes["upstream"])
    assert changes["upstream"].of("tacho_handshakes_total") > 0
    assert changes["upstream"].of("tacho_requests_unanswered_total") == 0


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_tls_that_is_passed_through(cgroups, agree, version):
    """The proxy looks into nothing. Its clients ask only when session tickets, if there are any, have come to them."""

    def upstream(prefix):
        return Nginx(prefix, tls=version)

    def proxy(prefix, back):
        return HAProxy(f"127.0.0.1:{back.tls_port}", prefix, options="mode tcp")

    connections, requests = 23, 3
    with observed(cgroups, upstream, proxy) as (front, back, changes):
        for _ in range(connections):
            with TlsConnection(front.port) as connection:
                if version == "TLSv1.3":
                    assert select.select([connection.secured], [], [], 20)[0]
                for _ in range(requests):
                    connection.ask(b"GET /return HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                connection.say_goodbye()
    counted = Counted("ssl", connections * requests, 1)
    agree(f"HAProxy, {version} passed through", counted, changes["proxy"])
    agree(f"nginx behind it, {version}", counted, changes["upstream"])
    assert changes["proxy"].of("tacho_dependency_calls_total", peer=f"127.0.0.1:{back.tls_port}") == counted.requests
    assert all(change.of("tacho_requests_unanswered_total") == 0 for change in changes.values())


def test_forwarding_name_server(cgroups, agree):
    """Its sockets to the upstream are not connected: the peer is known by the calls that send to it."""
    with observed(cgroups, Knot, lambda prefix, back: Dnsmasq(back.port, prefix)) as (front, back, changes):
        counted = dnsperf(front.port, [f"{host} A" for host in Knot.hosts], runs=20)
    agree("dnsmasq, forwarding to Knot", counted, changes["proxy"])
    agree("Knot behind dnsmasq", counted, changes["upstream"])
    assert_passed_on(changes, back.address)
