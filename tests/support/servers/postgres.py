"""PostgreSQL in a directory of its own, run by a user other than root."""

import pathlib
import shutil
import signal

from support.certificate import self_signed
from support.process import run
from support.servers.base import Server

_USER = "postgres"
_NOTHING_DURABLE = [
    "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off", "-c", "autovacuum=off",
]  # fmt: skip


def postgres_programs() -> pathlib.Path:
    """The directory of the newest installed server's programs; Debian keeps them off the PATH."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda place: float(place.parent.name))
    if not found:
        raise FileNotFoundError("PostgreSQL is not installed: deploy/install-deps e2e")
    return found[-1]


class Postgres(Server):
    """Listens on TCP and on a unix socket in `directory`; everybody may log in without a password. Clients ask for TLS if `tls`,
    for which they speak once more before it.

    Nothing is durable, unless `durable`: then every commit waits for the disk, and the janitor runs. `primary_port`: of
    another one whose standby it is.
    """

    name = "postgres"
    stop_signal = signal.SIGINT  # a fast shutdown
    @property
    def environment(self) -> dict:
        """Of its clients, which ask for TLS and GSS first by default, with a request and a reply of their own."""
        mode = "require" if self.tls else "disable"
        return {"PGUSER": _USER, "PGDATABASE": _USER, "PGSSLMODE": mode, "PGGSSENCMODE": "disable"}

    def __init__(self, prefix=(), durable: bool = False, primary_port: int | None = None, tls: bool = False):
        self.tls = tls
        self._durable = durable
        self._primary_port = primary_port
        super().__init__(prefix)

    def start(self):
        shutil.chown(self.directory, _USER, _USER)
        programs = postgres_programs()
        data = self.directory / "data"
        if self._primary_port:
            # A standby: the primary's files, and its log as it grows.
            run([programs / "pg_basebackup", "-D", data, "-h", "127.0.0.1", "-p", self._primary_port, "--write-recovery-conf",
                 "--no-sync", "--checkpoint=fast"], user=_USER, env=self.environment)  # fmt: skip
        else:
            run([programs / "initdb", "-D", data, "-A", "trust", "--no-sync", "--locale=C"], user=_USER)
        return self._start([
            programs / "postgres", "-D", data, "-p", self.port, "-h", "127.0.0.1", "-k", self.directory,
            *([] if self._durable else _NOTHING_DURABLE), *(self._encrypted() if self.tls else []),
        ], user=_USER)  # fmt: skip

    def _encrypted(self) -> list:
        certificate, key = self_signed(self.directory)
        shutil.chown(key, _USER, _USER)
        return ["-c", "ssl=on", "-c", f"ssl_cert_file={certificate}", "-c", f"ssl_key_file={key}"]

    def ready(self):
        command = [postgres_programs() / "pg_isready", "-h", self.directory, "-p", self.port]
        return "accepting" in run(command, env=self.environment, check=False)

    @property
    def unix_socket(self) -> pathlib.Path:
        return self.directory / f".s.PGSQL.{self.port}"
