"""HAProxy as HTTP proxy before one server."""

import signal

from support.certificate import self_signed
from support.net import free_port
from support.servers.base import Server

_CONFIGURATION = """
global
    nbthread {threads}
    stats socket {directory}/admin level admin expose-fd listeners
defaults
    mode http
    timeout connect 10s
    timeout client 60s
    timeout server 60s
    http-reuse always
    {options}
frontend front
    bind 127.0.0.1:{port}
    {tls}
    default_backend back
backend back
    server upstream {upstream}
"""


class HAProxy(Server):
    """`upstream` is HOST:PORT; connections to it are kept and shared by all clients.

    With `http2` it speaks HTTP/1.1 and HTTP/2 under TLS on `tls_port`, too.
    """

    name = "haproxy"
    stop_signal = signal.SIGTERM

    def __init__(self, upstream: str, prefix=(), threads: int = 2, options: str = "", http2: bool = False):
        self._upstream = upstream
        self._threads = threads
        self._options = options
        self.tls_port = free_port() if http2 else None
        super().__init__(prefix)

    @property
    def configuration(self):
        return self.directory / "haproxy.cfg"

    def start(self):
        tls = ""
        if self.tls_port:
            both = self.directory / "both.pem"
            both.write_text("".join(part.read_text() for part in self_signed(self.directory)))
            tls = f"bind 127.0.0.1:{self.tls_port} ssl crt {both} alpn h2,http/1.1"
        self.configuration.write_text(
            _CONFIGURATION.format(
                directory=self.directory, port=self.port, threads=self._threads, upstream=self._upstream,
                options=self._options, tls=tls,
            )
        )  # fmt: skip
        return self._start(["haproxy", "-W", "-db", "-f", self.configuration])

    def reload(self) -> None:
        """A new worker takes the listening sockets from the old one, which serves its connections to the end and ends.

        While that goes on, the master would not hear of another reload.
        """
        seen = self.process.line_count
        self.process.signal(signal.SIGUSR2)
        self.process.wait_for_line("Former worker .* exited", start=seen)

    def url(self, path: str) -> str:
        return f"http://{self.address}{path}"

    def tls_url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.tls_port}{path}"
