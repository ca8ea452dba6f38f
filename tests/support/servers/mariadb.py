"""MariaDB in a directory of its own."""

from support.certificate import self_signed
from support.process import run
from support.servers.base import Server


class MariaDB(Server):
    """Listens on TCP and on a unix socket; everybody may log in as root without a password. Commits wait for
    the disk if `durable`. With a certificate if `tls`."""

    name = "mariadb"

    def __init__(self, prefix=(), durable: bool = False, tls: bool = False):
        self.tls = tls
        self._durable = durable
        super().__init__(prefix)

    def start(self):
        data = self.directory / "data"
        run(["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal",
             "--skip-test-db"])  # fmt: skip
        return self._start([
            "mariadbd", "--no-defaults", "--user=root", f"--datadir={data}", f"--socket={self.unix_socket}",
            f"--port={self.port}", "--bind-address=127.0.0.1", f"--innodb-flush-log-at-trx-commit={int(self._durable)}",
            *(self._encrypted() if self.tls else []),
        ])  # fmt: skip

    def _encrypted(self) -> list[str]:
        certificate, key = self_signed(self.directory)
        return [f"--ssl-cert={certificate}", f"--ssl-key={key}"]

    def ready(self):
        return super().ready() and self.unix_socket.exists()

    @property
    def unix_socket(self):
        return self.directory / "socket"
