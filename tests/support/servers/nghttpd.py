"""nghttpd, nghttp2's server, over cleartext HTTP/2: it sends its settings before it has read anything."""

from support.servers.base import Server


class Nghttpd(Server):
    name = "nghttpd"

    def start(self):
        (self.directory / "file").write_bytes(b"x" * 8192)
        return self._start(["nghttpd", "--no-tls", "-n", 2, "-d", self.directory, "-a", "127.0.0.1", self.port])

    def url(self) -> str:
        return f"http://{self.address}/file"
