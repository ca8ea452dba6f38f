"""Asks an Apache over connections on which it wants a client's certificate from the second or first request on."""

import http.client
import pathlib
import ssl
import sys

from support.clients.counted import Counted
from support.process import run


def certified(server, version: str, connections: int, asked_before: int, prefix=()) -> Counted:
    """Four requests a connection: so many before the one that needs a certificate. `version`: "TLSv1_2" or "TLSv1_3"."""
    order = [server.tls_port, version, connections, asked_before, server.certificate, server.key]
    answered = run([sys.executable, "-B", pathlib.Path(__file__), *order], prefix=prefix, timeout=60)
    return Counted("http.client", int(answered), 1)


def _context(version: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    context.post_handshake_auth = True
    return context


def is_refused_without(server, version: str) -> bool:
    """Whether one request without a certificate is refused: so the server does ask for it."""
    connection = http.client.HTTPSConnection("127.0.0.1", server.tls_port, context=_context(version), timeout=20)
    try:
        connection.request("GET", "/known")
        return connection.getresponse().status == 403
    except (ssl.SSLError, ConnectionError):
        return True
    finally:
        connection.close()


def _main(port: str, version: str, connections: str, asked_before: str, certificate: str, key: str) -> None:
    context = _context(version)
    context.load_cert_chain(certificate, key)
    answered = 0
    for _ in range(int(connections)):
        connection = http.client.HTTPSConnection("127.0.0.1", int(port), context=context, timeout=20)
        for request in range(4):
            connection.request("GET", "/known" if request == int(asked_before) else "/static")
            answer = connection.getresponse()
            answer.read()
            if answer.status not in (200, 404):
                raise RuntimeError(f"{answer.status} {answer.reason}")
            answered += 1
        connection.close()
    print(answered)


if __name__ == "__main__":
    _main(*sys.argv[1:])
