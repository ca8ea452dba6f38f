"""redis."""

import socket
import tempfile

from support.servers.base import Server


class Redis(Server):
    """Keeps nothing, unless `durable`: then every write waits for the disk, in a directory below that one. `primary_port`:
    of another one whose replica it is; None: it has its own data."""

    name = "redis"

    def __init__(self, prefix=(), primary_port: int | None = None, durable: str | None = None):
        self._journal = tempfile.TemporaryDirectory(prefix="tacho-redis-", dir=durable) if durable else None
        self._replica = ["--replicaof", "127.0.0.1", primary_port] if primary_port else []
        super().__init__(prefix)

    def start(self):
        keeping = ["--appendonly", "no", "--dir", self.directory]
        if self._journal:
            keeping = ["--appendonly", "yes", "--appendfsync", "always", "--dir", self._journal.name]
        return self._start([
            "redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", "", *keeping, "--repl-diskless-sync-delay", 0, "--enable-debug-command", "local", *self._replica,
        ])  # fmt: skip

    def __exit__(self, *error):
        super().__exit__(*error)
        if self._journal:
            self._journal.cleanup()

    def info(self, section: str = "stats") -> dict[str, str]:
        """What redis counted: INFO, at the price of one request."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(f"INFO {section}\r\n".encode())
            stream = connection.makefile("rb")
            length = int(stream.readline()[1:])
            lines = stream.read(length).decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)
