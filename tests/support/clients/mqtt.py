"""A client of MQTT 3.1.1 whose packets are sent when the test says so."""

import socket


class MqttClient:
    """Connects at once: one request."""

    def __init__(self, port: int, name: str):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = self._socket.makefile("rb")
        self._send(0x10, b"\0\4MQTT\4\2\0\0" + _text(name))
        self._expect(0x20)

    def subscribe(self, topic: str, quality: int = 1) -> None:
        self._send(0x82, b"\0\1" + _text(topic) + bytes([quality]))
        self._expect(0x90)

    def publish(self, topic: str, message: bytes) -> None:
        """Returns when the broker has acknowledged it."""
        self._send(0x32, _text(topic) + b"\0\1" + message)
        self._expect(0x40)

    def tell(self, topic: str, message: bytes) -> None:
        """Publishes what nobody acknowledges."""
        self._send(0x30, _text(topic) + message)

    def hear(self) -> bytes:
        """What is delivered next so."""
        body = self._expect(0x30)
        return body[2 + int.from_bytes(body[:2]) :]

    def take(self) -> bytes:
        """What is delivered next, which is acknowledged."""
        body = self._expect(0x30)
        topic = int.from_bytes(body[:2])
        self._send(0x40, body[2 + topic : 4 + topic])
        return body[4 + topic :]

    def _send(self, kind: int, body: bytes) -> None:
        self._socket.sendall(bytes([kind, len(body)]) + body)

    def _expect(self, kind: int) -> bytes:
        head, length = self._received.read(2)
        if head & 0xF0 != kind & 0xF0:
            raise ConnectionError(f"a packet of kind {head:#x} came instead of {kind:#x}")
        return self._received.read(length)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._received.close()
        self._socket.close()


def _text(text: str) -> bytes:
    return len(text).to_bytes(2) + text.encode()
