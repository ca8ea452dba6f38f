"""nginx with a location that answers from memory and one that serves a file."""

import signal

from support.certificate import self_signed
from support.net import free_port
from support.servers.base import Server

_CONFIGURATION = """
user root;
daemon off;
worker_processes {workers};
error_log stderr warn;
pid {directory}/nginx.pid;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    sendfile on;
    keepalive_requests 1000000000;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    server {{
        listen 127.0.0.1:{port} {listen};
        {tls}
        root {directory};
        location /return {{ return 200 "ok\\n"; }}
        location /static {{ }}
        {locations}
    }}
    {more}
}}
"""


_TLS = """listen 127.0.0.1:{port} ssl {options};
        ssl_certificate {certificate};
        ssl_certificate_key {key};
        ssl_protocols {versions};
"""


class Nginx(Server):
    """`/return` is one send a reply, `/static` (8 KiB) two: header and sendfile.

    `listen` are options of its socket, `locations` goes into the server block, `more` into the http block. With `tls`,
    versions as in "TLSv1.2 TLSv1.3", it speaks that on `tls_port`, too; `tls_options` are of that socket ("http2").
    """

    name = "nginx"
    stop_signal = signal.SIGTERM

    def __init__(
        self, prefix=(), workers: int = 1, listen: str = "", locations: str = "", more: str = "", tls: str = "",
        tls_options: str = "",
    ):
        self._workers = workers
        self._listen = listen
        self._locations = locations
        self._more = more
        self._tls = tls
        self._tls_options = tls_options
        self.tls_port = free_port() if tls else None
        super().__init__(prefix)

    def start(self):
        (self.directory / "static").write_bytes(b"x" * 8192)
        tls = ""
        if self.tls_port:
            certificate, key = self_signed(self.directory)
            tls = _TLS.format(
                versions=self._tls, port=self.tls_port, options=self._tls_options, certificate=certificate, key=key
            )
        configuration = self.directory / "nginx.conf"
        configuration.write_text(
            _CONFIGURATION.format(
                workers=self._workers,
                directory=self.directory,
                port=self.port,
                listen=self._listen,
                tls=tls,
                locations=self._locations,
                more=self._more,
            )
        )
        return self._start(["nginx", "-e", "stderr", "-c", configuration])

    def url(self, path: str) -> str:
        return f"http://{self.address}{path}"

    def tls_url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.tls_port}{path}"
