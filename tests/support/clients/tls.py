"""TLS connections whose handshake, requests and goodbye are made when the test says so."""

import socket
import ssl
import time


def context(version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    """Trusts everybody; speaks only `version`, if one is given."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    if version:
        made.minimum_version = made.maximum_version = version
    return made


class TlsConnection:
    """Shakes hands at once. Nothing is read before a request is sent, not even session tickets."""

    def __init__(self, port: int, made: ssl.SSLContext | None = None, session: ssl.SSLSession | None = None):
        connected = socket.create_connection(("127.0.0.1", port), timeout=20)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.secured = (made or context()).wrap_socket(connected, session=session)

    def ask(self, request: bytes) -> float:
        """Seconds from sending it to the first of the answer."""
        began = time.monotonic()
        self.secured.sendall(request)
        if not self.secured.recv(65536):
            raise ConnectionError("the server closed the connection")
        return time.monotonic() - began

    def say_goodbye(self) -> None:
        """Sends close_notify and waits for the server's, or for its FIN."""
        try:
            self.secured.unwrap().close()
        except (ssl.SSLError, OSError):
            self.secured.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.secured.close()
