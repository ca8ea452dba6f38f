"""Caddy: a server in Go, with Go's own TLS."""

from support.certificate import self_signed
from support.net import free_port
from support.servers.base import Server

_CONFIGURATION = """
{{
    admin off
    auto_https off
    servers {{
        protocols h1 h2
    }}
}}
(site) {{
    root * {directory}
    respond /return "ok"
    file_server
}}
http://127.0.0.1:{port} {{
    import site
}}
https://127.0.0.1:{tls_port} {{
    tls {certificate} {key}
    import site
}}
"""


class Caddy(Server):
    """Serves `/return` and `/static` (8 KiB) on `port` and, with HTTP/1.1 and HTTP/2 under TLS, on `tls_port`."""

    name = "caddy"

    def __init__(self, prefix=()):
        self.tls_port = free_port()
        super().__init__(prefix)

    def start(self):
        (self.directory / "static").write_bytes(b"x" * 8192)
        certificate, key = self_signed(self.directory)
        configuration = self.directory / "Caddyfile"
        configuration.write_text(
            _CONFIGURATION.format(
                directory=self.directory, port=self.port, tls_port=self.tls_port, certificate=certificate, key=key,
            )
        )  # fmt: skip
        return self._start(
            ["caddy", "run", "--adapter", "caddyfile", "--config", configuration], env={"HOME": str(self.directory)}
        )

    def url(self, path: str) -> str:
        return f"http://{self.address}{path}"

    def tls_url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.tls_port}{path}"
