"""nghttp2's server and proxy over cleartext HTTP/2. The server sends its settings before it has read anything."""

from support.servers.base import Server


class Nghttpd(Server):
    name = "nghttpd"

    def start(self):
        (self.directory / "file").write_bytes(b"x" * 8192)
        return self._start(["nghttpd", "--no-tls", "-n", 2, "-d", self.directory, "-a", "127.0.0.1", self.port])

    def url(self) -> str:
        return f"http://{self.address}/file"


class Nghttpx(Server):
    """nghttp2's proxy in front of an HTTP/1.1 server: HTTP/2 in the clear by its preface, or by an upgrade."""

    name = "nghttpx"

    def __init__(self, backend_port: int, prefix=()):
        self._backend = backend_port
        super().__init__(prefix)

    def start(self):
        return self._start([
            "nghttpx", "--conf=/dev/null", "--workers=1", f"--frontend=127.0.0.1,{self.port};no-tls",
            f"--backend=127.0.0.1,{self._backend}",
        ])  # fmt: skip

    def url(self, path: str) -> str:
        return f"http://{self.address}{path}"
