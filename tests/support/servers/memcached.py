"""memcached."""

import socket

from support.servers.base import Server


class Memcached(Server):
    name = "memcached"

    def __init__(self, prefix=(), threads: int = 4):
        self._threads = threads
        super().__init__(prefix)

    def start(self):
        return self._start(["memcached", "-u", "nobody", "-l", "127.0.0.1", "-p", self.port, "-t", self._threads, "-U", 0, "-m", 1024])

    def stats(self) -> dict[str, str]:
        """What memcached counted, at the price of one request."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(b"stats\r\n")
            lines = iter(connection.makefile("r").readline, "END\n")
            return dict(line.split()[1:3] for line in lines)
