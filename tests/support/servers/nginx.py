"""nginx with a location that answers from memory and one that serves a file."""

import signal

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
        listen 127.0.0.1:{port} {options};
        root {directory};
        location /return {{ return 200 "ok\\n"; }}
        location /static {{ }}
    }}
    {more}
}}
"""


class Nginx(Server):
    """`/return` is one send a reply, `/static` (8 KiB) two: header and sendfile. `more` goes into the http block, `options` behind listen."""

    name = "nginx"
    stop_signal = signal.SIGTERM

    def __init__(self, prefix=(), workers: int = 1, more: str = "", options: str = ""):
        self._workers = workers
        self._more = more
        self._options = options
        super().__init__(prefix)

    def start(self):
        (self.directory / "static").write_bytes(b"x" * 8192)
        configuration = self.directory / "nginx.conf"
        configuration.write_text(
            _CONFIGURATION.format(
                workers=self._workers,
                directory=self.directory,
                port=self.port,
                more=self._more,
                options=self._options,
            )
        )
        return self._start(["nginx", "-e", "stderr", "-c", configuration])

    def url(self, path: str) -> str:
        return f"http://{self.address}{path}"
