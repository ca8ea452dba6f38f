"""A redis client that knows how long each command took."""

import socket
import time


class RespClient:
    """Commands in redis' inline form; only replies of one line are understood."""

    def __init__(self, port: int):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def command(self, text: str) -> float:
        """Seconds from sending it to its answer."""
        began = time.monotonic()
        self._socket.sendall(text.encode() + b"\r\n")
        answer = self._socket.recv(4096)
        seconds = time.monotonic() - began
        if answer[:1] not in b"+:$" or not answer.endswith(b"\r\n"):
            raise RuntimeError(f"redis answered {answer!r} to {text}")
        return seconds

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()
