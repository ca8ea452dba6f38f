"""A PostgreSQL client that knows when it sent each query and when the first byte of the answer came."""

import socket
import struct
import time


class PostgresClient:
    """One connection of a user that needs no password; `log_ins` are turns that are no queries."""

    log_ins = 1

    def __init__(self, port: int, user: str = "postgres", **parameters: str):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        words = {"user": user, "database": user, **parameters}
        body = struct.pack("!I", 196608) + b"".join(f"{key}\0{value}\0".encode() for key, value in words.items()) + b"\0"
        self._socket.sendall(struct.pack("!I", len(body) + 4) + body)
        self._received = b""
        self._until_ready()

    def query(self, text: str) -> float:
        """Seconds from sending it to the first byte of the answer."""
        began = time.monotonic()
        self.send(text)
        self._received += self._socket.recv(65536)
        seconds = time.monotonic() - began
        self._until_ready()
        return seconds

    def rows(self, text: str) -> list[str]:
        """The first column of the answer."""
        self.send(text)
        return self._until_ready()

    def exchange(self, messages: bytes, answers: int) -> None:
        """Sends all of them at once, and waits until the server is ready again for the last one of them."""
        self._socket.sendall(messages)
        for _ in range(answers):
            self._until_ready()

    def copy(self, text: str, data: bytes, pieces: int) -> None:
        """COPY … FROM STDIN: the data follows in so many messages, each sent by itself, when the server asks for it."""
        self.send(text)
        while not self._received.startswith(b"G"):  # CopyInResponse
            self._received += self._socket.recv(65536)
        self._received = self._received[1 + struct.unpack("!I", self._received[1:5])[0] :]
        for _ in range(pieces):
            self._socket.sendall(b"d" + struct.pack("!I", len(data) + 4) + data)
        self._socket.sendall(b"c" + struct.pack("!I", 4))
        self._until_ready()

    def send(self, text: str) -> None:
        body = text.encode() + b"\0"
        self._socket.sendall(b"Q" + struct.pack("!I", len(body) + 4) + body)

    def _until_ready(self) -> list[str]:
        rows = []
        while True:
            while len(self._received) < 5 or len(self._received) < 1 + struct.unpack("!I", self._received[1:5])[0]:
                part = self._socket.recv(65536)
                if not part:
                    raise ConnectionError("PostgreSQL closed the connection")
                self._received += part
            length = 1 + struct.unpack("!I", self._received[1:5])[0]
            message, self._received = self._received[:length], self._received[length:]
            if message[:1] == b"E":
                raise RuntimeError(f"PostgreSQL refused: {message!r}")
            if message[:1] == b"D":
                rows.append(message[11 : 11 + struct.unpack("!I", message[7:11])[0]].decode())
            if message[:1] == b"Z":
                return rows

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self._socket:
            self._socket.sendall(b"X" + struct.pack("!I", 4))
