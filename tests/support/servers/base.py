"""What all servers have in common: a temporary directory, a process, a port."""

import pathlib
import signal
import tempfile

from support.net import free_port, listens
from support.process import Process
from support.waiting import wait_until


class Server:
    """A process that serves; subclasses start it in `start` and say in `ready` when it listens."""

    name = "server"
    stop_signal = signal.SIGTERM

    def __init__(self, prefix=()):
        self.prefix = list(prefix)
        self.port = free_port()
        self._temporary = tempfile.TemporaryDirectory(prefix=f"tacho-{self.name}-")
        self.directory = pathlib.Path(self._temporary.name)
        try:
            self.process = self.start()
            wait_until(self._ready_or_dead, 20, f"{self.name} listens")
        except BaseException:
            self._temporary.cleanup()
            raise

    def start(self) -> Process:
        raise NotImplementedError

    def ready(self) -> bool:
        return listens(self.port)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def _ready_or_dead(self) -> bool:
        if not self.process.running:
            self.process.wait()
            raise RuntimeError(f"{self.name} ended at once:\n{self.process.output}")
        return self.ready()

    def _start(self, argv, **options) -> Process:
        return Process(argv, prefix=self.prefix, stop_signal=self.stop_signal, **options)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        try:
            self.process.__exit__(*error)
        finally:
            self._temporary.cleanup()
