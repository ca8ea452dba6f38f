"""HTTP servers in languages with a runtime; the number in the path says how much work a request is."""

import os
import pathlib

from support import paths
from support.certificate import self_signed
from support.process import run
from support.servers.base import Server

_PROGRAMS = pathlib.Path(__file__).parent / "programs"


class Node(Server):
    """One event loop; `/100` costs a millisecond or so. `protocol`: "http", or "http2" in the clear."""

    name = "node"

    def __init__(self, prefix=(), protocol: str = "http"):
        self._protocol = protocol
        super().__init__(prefix)

    def start(self):
        return self._start(["node", _PROGRAMS / "work.js", self.port, self._protocol])


class Burn(Server):
    """One event loop; `/100` costs 100 ms on a CPU, whatever machine it is and however busy."""

    name = "burn"

    def start(self):
        return self._start(["/usr/bin/python3", "-B", _PROGRAMS / "burn.py", self.port])


class NodeTls(Node):
    """The same under TLS, with HTTP/1.1 and HTTP/2 as the client likes."""

    def start(self):
        return self._start(["node", _PROGRAMS / "work.js", self.port, "http2", *self_signed(self.directory)])

    @property
    def tls_port(self) -> int:
        return self.port

    def tls_url(self, path: str) -> str:
        return f"https://{self.address}{path}"


class Java(Server):
    """The JDK's HttpServer: one thread polls and hands requests to four; garbage is collected.

    It sends header and body apart. Without `nodelay` the body waits until the header is acknowledged: 40 ms (RFC 1122, 4.2.3.2).
    """

    name = "java"

    def __init__(self, prefix=(), nodelay: bool = True):
        self._nodelay = f"-Dsun.net.httpserver.nodelay={str(nodelay).lower()}"
        super().__init__(prefix)

    def start(self):
        return self._start(["java", "-Xmx256m", self._nodelay, _PROGRAMS / "Work.java", self.port])


class Go(Server):
    """net/http: a goroutine a connection, all on the runtime's poller."""

    name = "go"

    def start(self):
        program = paths.BUILD / "tests" / "validation" / "work_go"
        program.parent.mkdir(parents=True, exist_ok=True)
        cache = {"GOCACHE": str(program.parent / "go-cache"), "GOFLAGS": "-mod=mod", "HOME": os.environ.get("HOME", "/root")}
        run(["go", "build", "-o", program, _PROGRAMS / "work.go"], env=cache, timeout=300)
        return self._start([program, self.port])
