"""DNS servers: Knot answers from a zone, dnsmasq asks another server."""

from support.servers.base import Server

_KNOT = """
server:
    rundir: {directory}
    listen: 127.0.0.1@{port}
    udp-workers: {workers}
    tcp-workers: 1
    background-workers: 1
database:
    storage: {directory}
log:
  - target: stderr
    any: warning
zone:
  - domain: example
    storage: {directory}
    file: example.zone
    {zone}
"""
_ZONE = """$TTL 3600
@ SOA ns hostmaster 1 3600 600 86400 300
@ NS ns
ns A 192.0.2.1
"""


class Knot(Server):
    """Serves the zone `example` with hosts h0…h99; several UDP workers have a SO_REUSEPORT socket each.

    `signing`: every answer is signed when it is asked for (mod-onlinesign), some hundred microseconds of elliptic curves.
    """

    name = "knot"
    hosts = tuple(f"h{number}.example" for number in range(100))

    def __init__(self, prefix=(), workers: int = 1, signing: bool = False):
        self._workers = workers
        self._zone = "module: mod-onlinesign" if signing else ""
        super().__init__(prefix)

    def start(self):
        hosts = "".join(f"h{number} A 192.0.2.{number}\n" for number in range(100))
        (self.directory / "example.zone").write_text(_ZONE + hosts)
        configuration = self.directory / "knot.conf"
        configuration.write_text(_KNOT.format(directory=self.directory, port=self.port, workers=self._workers, zone=self._zone))
        return self._start(["knotd", "-c", configuration])


class Dnsmasq(Server):
    """Forwards every query to `upstream` and remembers no answer."""

    name = "dnsmasq"

    def __init__(self, upstream_port: int, prefix=()):
        self._upstream_port = upstream_port
        super().__init__(prefix)

    def start(self):
        return self._start([
            "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--cache-size=0",
            f"--port={self.port}", "--listen-address=127.0.0.1", "--bind-interfaces", "--user=root", "--pid-file=",
            "--dns-forward-max=1000", f"--server=127.0.0.1#{self._upstream_port}",
        ])  # fmt: skip
