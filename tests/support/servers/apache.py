"""Apache httpd with one of its ways to serve connections: a process each, or threads."""

from support.certificate import self_signed
from support.net import free_port
from support.servers.base import Server

_MODULES = "/usr/lib/apache2/modules"
_CONFIGURATION = """
ServerRoot {directory}
ServerName 127.0.0.1
PidFile {directory}/pid
ErrorLog {directory}/error.log
Listen 127.0.0.1:{port}
User www-data
Group www-data
LoadModule mpm_{model}_module {modules}/mod_mpm_{model}.so
LoadModule authz_core_module {modules}/mod_authz_core.so
DocumentRoot {directory}/www
StartServers {processes}
KeepAlive On
MaxKeepAliveRequests 0
{more}
"""
_HTTP2 = """
LoadModule ssl_module {modules}/mod_ssl.so
LoadModule http2_module {modules}/mod_http2.so
Listen 127.0.0.1:{port}
<VirtualHost 127.0.0.1:{port}>
    SSLEngine on
    SSLCertificateFile {certificate}
    SSLCertificateKeyFile {key}
    Protocols h2 http/1.1
    SSLCACertificateFile {certificate}
    <Location /known>
        SSLVerifyClient require
    </Location>
</VirtualHost>
"""


class Apache(Server):
    """`model`: prefork, worker or event. Serves `/static`, 8 KiB: a mapped file, sent with its header by one writev.

    `more` are lines of its configuration, with {modules} where its modules are. With `http2` it speaks HTTP/1.1 and HTTP/2 under TLS on
    `tls_port`, too; it asks for a client's certificate, which may be its own, once /known is asked for.
    """

    name = "apache"

    def __init__(self, prefix=(), model: str = "prefork", more: str = "", http2: bool = False):
        self._model = model
        self._more = more.format(modules=_MODULES)
        self.tls_port = free_port() if http2 else None
        super().__init__(prefix)

    def start(self):
        self.directory.chmod(0o755)
        (self.directory / "www").mkdir()
        (self.directory / "www" / "static").write_bytes(b"x" * 8192)
        more = self._more
        if self.tls_port:
            self.certificate, self.key = self_signed(self.directory)
            more += _HTTP2.format(modules=_MODULES, port=self.tls_port, certificate=self.certificate, key=self.key)
        configuration = self.directory / "httpd.conf"
        configuration.write_text(
            _CONFIGURATION.format(
                directory=self.directory, port=self.port, model=self._model, modules=_MODULES,
                processes=8 if self._model == "prefork" else 2, more=more,
            )
        )  # fmt: skip
        # At its end it signals its whole process group, which had better not be ours.
        return self._start(["setsid", "apache2", "-DFOREGROUND", "-f", configuration])

    def url(self, path: str) -> str:
        return f"http://{self.address}{path}"

    def tls_url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.tls_port}{path}"
