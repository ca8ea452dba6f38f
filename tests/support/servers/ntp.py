"""chronyd: answers clients and, if it has an upstream, polls that from the very same socket."""

import socket

from support.servers.base import Server

_CONFIGURATION = """
port {port}
acquisitionport {port}
bindaddress 127.0.0.1
bindacqaddress 127.0.0.1
bindcmdaddress /
cmdport 0
allow 127.0.0.1
local stratum 10
pidfile {directory}/chronyd.pid
{upstream}
"""
_REQUEST = b"\x23" + bytes(47)  # version 4, mode client


def asked(address: str, count: int) -> int:
    """Sends `count` requests, one after the other, and returns how many were answered."""
    host, port = address.split(":")
    answered = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        client.connect((host, int(port)))
        for _ in range(count):
            client.send(_REQUEST)
            answered += len(client.recv(128)) == len(_REQUEST)
    return answered


class Chrony(Server):
    """Changes no clock. `upstream_port`: of another one that it polls sixteen times a second; None: it polls nobody."""

    name = "chrony"

    def __init__(self, upstream_port: int | None = None, prefix=()):
        self._upstream_port = upstream_port
        super().__init__(prefix)

    def start(self):
        upstream = f"server 127.0.0.1 port {self._upstream_port} iburst minpoll -4 maxpoll -4" if self._upstream_port else ""
        configuration = self.directory / "chrony.conf"
        configuration.write_text(_CONFIGURATION.format(port=self.port, directory=self.directory, upstream=upstream))
        return self._start(["chronyd", "-x", "-d", "-u", "root", "-f", configuration])

    def ready(self) -> bool:
        try:
            return asked(self.address, 1) == 1
        except OSError:
            return False
