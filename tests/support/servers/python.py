"""Python servers: WSGI servers with processes or threads, and asyncio."""

import pathlib

from support.certificate import self_signed
from support.servers.base import Server

_PROGRAMS = pathlib.Path(__file__).parent / "programs"
# Debian's: another Python on the PATH has not its packages.
_PYTHON = "/usr/bin/python3"


class Gunicorn(Server):
    """`kind`: sync, a process answers one connection after the other and closes it; gthread, threads keep connections.

    Listens on the unix socket `unix_socket` when `unix` is set, else on TCP. `module`: whose application, of programs/.
    """

    name = "gunicorn"

    def __init__(
        self, prefix=(), kind: str = "sync", workers: int = 2, unix: bool = False, module: str = "application", env=None
    ):
        self._env = env
        self._kind = kind
        self._module = module
        self._workers = workers
        self._unix = unix
        super().__init__(prefix)

    @property
    def unix_socket(self) -> pathlib.Path:
        return self.directory / "socket"

    def ready(self):
        # All workers: a request that finds none yet would only wait.
        started = self.process.output.count("Booting worker") == self._workers
        return started and (self.unix_socket.exists() if self._unix else super().ready())

    def start(self):
        bind = f"unix:{self.unix_socket}" if self._unix else self.address
        return self._start([
            _PYTHON, "-B", "-m", "gunicorn", "--bind", bind, "--worker-class", self._kind, "--workers", self._workers,
            "--threads", 4, "--keep-alive", 60, f"{self._module}:application",
        ], cwd=_PROGRAMS, env=self._env)  # fmt: skip

    @property
    def url(self) -> str:
        return f"http://{self.address}/"


class Waitress(Server):
    """One thread reads and sends, a pool of threads runs the application."""

    name = "waitress"

    def __init__(self, prefix=(), module: str = "application", env=None):
        self._module, self._env = module, env
        super().__init__(prefix)

    def start(self):
        return self._start(
            [_PYTHON, "-B", "-m", "waitress", f"--listen={self.address}", "--threads=4", f"{self._module}:application"],
            cwd=_PROGRAMS,
            env=self._env,
        )

    @property
    def url(self) -> str:
        return f"http://{self.address}/"


class AsyncioEcho(Server):
    """Speaks exact_client's protocol with messages of 64 bytes, on TCP or a unix socket.

    `inherited`: what programs/asyncio_echo.py does with a socket of ours, as in listening=SOCKET.
    """

    name = "asyncio"

    def __init__(self, prefix=(), unix: bool = False, **inherited):
        self._unix = unix
        self._inherited = inherited
        super().__init__(prefix)

    def start(self):
        where = self.directory / "socket" if self._unix else self.port
        sockets = [f"{kind}={socket.fileno()}" for kind, socket in self._inherited.items()]
        return self._start(
            [_PYTHON, "-B", _PROGRAMS / "asyncio_echo.py", where, *sockets],
            pass_fds=[socket.fileno() for socket in self._inherited.values()],
        )

    def ready(self):
        return "listening" in self.process.output

    @property
    def address(self) -> str:
        return f"unix:{self.directory / 'socket'}" if self._unix else super().address


class TlsWork(Server):
    """A thread a connection, a line for a line under TLS; sends `tickets` session tickets, when the client has said its last word."""

    name = "tls-work"

    def __init__(self, prefix=(), work: float = 0.02, tickets: int = 0):
        self._work, self._tickets = work, tickets
        super().__init__(prefix)

    def start(self):
        return self._start(
            [_PYTHON, "-B", _PROGRAMS / "tls_work.py", self.port, *self_signed(self.directory), self._work, self._tickets]
        )


class Script(Server):
    """One of programs/, with a port as its only argument. It listens on TCP, or prints `ready`."""

    name = "script"

    def __init__(self, program: str, prefix=(), ready: str = ""):
        self._program, self._ready = program, ready
        super().__init__(prefix)

    @staticmethod
    def file(program: str) -> pathlib.Path:
        return _PROGRAMS / program

    def start(self):
        return self._start([_PYTHON, "-B", self.file(self._program), self.port])

    def ready(self):
        return self._ready in self.process.output if self._ready else super().ready()
