"""Requests under TLS: as many as the client counted; handshakes, session tickets and goodbyes are none of them."""

import pytest

from support.clients import ab
from support.servers import GnutlsServer, Nginx
from support.tacho import Tacho, target


def assert_only_handshakes_beside(change, turns_of_a_handshake):
    """Every connection had its handshake, of so many turns, and nothing was left open when it ended."""
    connections = change.of("tacho_connections_total", role="server")
    handshakes = change.of("tacho_handshakes_total")
    least, most = turns_of_a_handshake
    # A client opens a connection more than it needs, or says goodbye in the middle of the handshake.
    assert least * (connections - 4) <= handshakes <= most * connections
    assert change.of("tacho_requests_unanswered_total") == 0


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
        # The hello; then the client's last flight, answered by session tickets (1.3) or Finished (1.2).
        assert_only_handshakes_beside(change, (2, 2))


@pytest.mark.parametrize("version", ["TLS1.2", "TLS1.3"])
def test_gnutls(cgroups, agree, version):
    group = cgroups("gnutls")
    with GnutlsServer(group.prefix) as server, Tacho({"targets": [target("gnutls", group.path)]}) as tacho:
        with tacho.watch("gnutls") as change:
            counted = ab(server.url, 53, connections=1, tls=version)
        agree(f"gnutls-serv, {version}, connection per request", counted, change)
        # Under 1.3 tickets go out before the client's last flight, which is then answered by the first reply.
        assert_only_handshakes_beside(change, (1, 1) if version == "TLS1.3" else (2, 2))
