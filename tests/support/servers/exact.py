"""The server that does exactly what it is told (tests/support/exact_server.cpp)."""

import json

from support import paths
from support.process import Process


class ExactServer:
    """Options as of `exact_server --help`, with underscores: mode="epoll", reply_delay_us=5000, …"""

    name = "exact_server"
    program = paths.EXACT_SERVER

    def __init__(self, prefix=(), listen: str = "127.0.0.1:0", **options):
        flags = [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
        self.process = Process([paths.require(self.program), f"--listen={listen}", *flags], prefix=prefix)
        self.address = self.process.wait_for_line(r"^listening (\S+)$").group(1)

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def pid(self) -> int:
        return self.process.pid

    def finish(self) -> dict:
        """Ends the server and returns what it counted."""
        self.process.stop()
        return json.loads(self.process.output.splitlines()[-1])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.__exit__(*error)


class UringServer(ExactServer):
    """The same on io_uring (tests/support/uring_server.cpp): multishot="true", …; it counts connections and requests."""

    name = "uring_server"
    program = paths.URING_SERVER
