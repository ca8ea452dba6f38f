"""A client of NATS whose lines are sent when the test says so."""

import socket


class NatsClient:
    """Connects at once: one request."""

    def __init__(self, port: int):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = self._socket.makefile("rb")
        self.next_line()  # INFO
        self._socket.sendall(b'CONNECT {"verbose":false,"headers":true}\r\nPING\r\n')
        self._expect(b"PONG")

    def subscribe(self, subject: str) -> None:
        """Returns when the server knows it: one request."""
        self._socket.sendall(f"SUB {subject} 1\r\nPING\r\n".encode())
        self._expect(b"PONG")

    def publish(self, subject: str, message: bytes, reply_to: str = "") -> None:
        self._socket.sendall(f"PUB {subject} {reply_to} {len(message)}\r\n".encode() + message + b"\r\n")

    def take(self) -> tuple[str, bytes]:
        """The next message, and the subject that its reply is wanted on."""
        words = self.next_line().split()
        if words[0] != b"MSG":
            raise ConnectionError(f"{words} came instead of a message")
        message = self._received.read(int(words[-1]))
        self._received.read(2)
        return (words[3].decode() if len(words) == 5 else ""), message

    def next_line(self) -> bytes:
        """What the server says next; it is told that there still is somebody where it asks for that."""
        while (line := self._received.readline()) == b"PING\r\n":
            self._socket.sendall(b"PONG\r\n")
        return line

    def live_for(self, pings: int) -> None:
        """Answers as many pings."""
        for _ in range(pings):
            self._expect(b"PING", itself=True)
            self._socket.sendall(b"PONG\r\n")

    def _expect(self, word: bytes, itself: bool = False) -> None:
        line = self._received.readline() if itself else self.next_line()
        if line.strip() != word:
            raise ConnectionError(f"{line!r} came instead of {word!r}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._received.close()
        self._socket.close()
