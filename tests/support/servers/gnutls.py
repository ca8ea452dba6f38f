"""gnutls-serv, the HTTP server that comes with GnuTLS' tools: one process, a connection for each request."""

from support.certificate import self_signed
from support.servers.base import Server


class GnutlsServer(Server):
    name = "gnutls-serv"

    def start(self):
        certificate, key = self_signed(self.directory)
        return self._start([
            "gnutls-serv", "--http", "--quiet", "--disable-client-cert", f"--port={self.port}",
            f"--x509certfile={certificate}", f"--x509keyfile={key}",
        ])  # fmt: skip

    @property
    def url(self) -> str:
        return f"https://{self.address}/"
