"""Requests under TLS: as many as the client counted; handshakes, session tickets and goodbyes are none of them."""

import subprocess

import pytest

from support.clients import Counted, ab
from support.clients.certified import certified, is_refused_without
from support.servers import GnutlsServer, Nginx
from support.servers.apache import Apache
from support.tacho import Tacho, target


def assert_only_handshakes_beside(change, turns_of_a_handshake):
    """Every connection had its handshake, of so many turns, and nothing was left open when it ended."""
    connections = change.of("tacho_connections_total", role="server")
    handshakes = change.of("tacho_handshakes_total")
    least, most = turns_of_a_handshake
    # A client opens a connection more than it needs, or says goodbye in the middle of the handshake.
    assert least * (connections - 4) <= handshakes <= most * connections
    assert change.of("tacho_requests_unanswered_total") == 0
    assert change.after.get("tacho_target_condition", target=change.target, condition="multiplexed") == 0


@pytest.mark.parametrize("version", ["TLS1.2", "TLS1.3"])
@pytest.mark.parametrize("keep_alive", [False, True])
def test_openssl(cgroups, agree, version, keep_alive):
    group = cgroups("nginx")
    with (
        Nginx(group.prefix, workers=2, tls="TLSv1.2 TLSv1.3") as server,
        Tacho({"targets": [target("nginx", group.path)]}) as tacho,
    ):
        with tacho.watch("nginx") as change:
            counted = ab(server.tls_url("/return"), 1009, keep_alive=keep_alive, tls=version)
        agree(f"nginx (OpenSSL), {version}, {'kept' if keep_alive else 'connection per request'}", counted, change)
        # The hello; then the client's last flight, answered by Finished (1.2) or session tickets (1.3), the latter maybe
        # with the reply to a request that came along.
        assert_only_handshakes_beside(change, (1, 2) if version == "TLS1.3" else (2, 2))


@pytest.mark.parametrize("version", ["TLS1.2", "TLS1.3"])
def test_gnutls(cgroups, agree, version):
    group = cgroups("gnutls")
    with GnutlsServer(group.prefix) as server, Tacho({"targets": [target("gnutls", group.path)]}) as tacho:
        with tacho.watch("gnutls") as change:
            counted = ab(server.url, 53, connections=1, tls=version)
        agree(f"gnutls-serv, {version}, connection per request", counted, change)
        # Under 1.3 tickets go out before the client's last flight, which is then answered by the first reply.
        assert_only_handshakes_beside(change, (1, 1) if version == "TLS1.3" else (2, 2))


def test_early_data(cgroups, agree):
    """A request that comes right behind the hello of a resumed session, and is answered before the handshake is over."""
    group = cgroups("early")
    connections = 23
    with (
        Nginx(group.prefix, tls="TLSv1.3", locations="ssl_early_data on;") as server,
        Tacho({"targets": [target("early", group.path)]}) as tacho,
    ):
        request, session = server.directory / "request", server.directory / "session"
        request.write_bytes(b"GET /return HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        openssl = ["openssl", "s_client", "-connect", f"127.0.0.1:{server.tls_port}", "-ign_eof"]

        def ask(*more, said=b"") -> str:
            return subprocess.run([*openssl, *map(str, more)], input=said, capture_output=True, timeout=20, check=True).stdout.decode()

        with tacho.watch("early") as change:
            ask("-sess_out", session, said=request.read_bytes())
            answers = [ask("-sess_in", session, "-early_data", request) for _ in range(connections)]
        assert all("Early data was accepted" in answer and "200 OK" in answer for answer in answers)
        agree("nginx, early data", Counted("openssl", 1 + connections, 1), change)
        # Only the first one has a last flight: who is answered that early leaves before.
        assert connections < change.of("tacho_handshakes_total") <= 2 * (1 + connections)
        assert change.of("tacho_requests_unanswered_total") == 0
        assert 0 < change.of("tacho_request_duration_seconds_sum") < 0.1 * connections


@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
@pytest.mark.parametrize("asked_before", [0, 2])
def test_a_certificate_that_is_asked_for_late(cgroups, agree, version, asked_before):
    """Within a request, by another handshake (TLS 1.2) or behind the first one (TLS 1.3): on neither side is it one more."""
    groups = {name: cgroups(name) for name in ("apache", "caller")}
    connections = 20
    with (
        Apache(groups["apache"].prefix, model="event", http2=True) as server,
        Tacho({"targets": [target(name, group.path) for name, group in groups.items()]}) as tacho,
    ):
        assert is_refused_without(server, version)
        with tacho.watch("apache") as served, tacho.watch("caller") as called:
            counted = certified(server, version, connections, asked_before, groups["caller"].prefix)
        assert counted.requests == 4 * connections
        agree(f"Apache, {version}, a certificate is asked for behind {asked_before} requests", counted, served)
        assert called.of("tacho_dependency_calls_total", peer=f"127.0.0.1:{server.tls_port}") == counted.requests
        assert called.requests == 0
        assert served.of("tacho_requests_unanswered_total") == 0
