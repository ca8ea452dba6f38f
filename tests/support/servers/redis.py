"""redis without persistence."""

import socket

from support.servers.base import Server


class Redis(Server):
    name = "redis"

    def start(self):
        return self._start([
            "redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
            "--dir", self.directory,
        ])  # fmt: skip

    def info(self) -> dict[str, str]:
        """What redis counted: INFO stats, at the price of one request."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(b"INFO stats\r\n")
            stream = connection.makefile("rb")
            length = int(stream.readline()[1:])
            lines = stream.read(length).decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)
