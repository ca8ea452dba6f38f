"""rsyslogd as a sink of datagrams, over UDP and on a unix socket."""

from support.net import udp_ports
from support.servers.base import Server

_CONFIGURATION = """
global(workDirectory="{directory}")
module(load="imudp")
module(load="imuxsock" SysSock.Use="off")
input(type="imudp" address="127.0.0.1" port="{port}")
input(type="imuxsock" Socket="{directory}/log" RateLimit.Interval="0")
*.* action(type="omfile" file="{directory}/messages" flushOnTXEnd="on")
"""


class Rsyslog(Server):
    """Writes what it gets to a file and answers nobody."""

    name = "rsyslog"

    def start(self):
        configuration = self.directory / "rsyslog.conf"
        configuration.write_text(_CONFIGURATION.format(directory=self.directory, port=self.port))
        return self._start(["rsyslogd", "-n", "-f", configuration, "-i", self.directory / "pid"])

    def ready(self) -> bool:
        return self.unix_socket.exists() and self.port in udp_ports()

    @property
    def unix_socket(self):
        return self.directory / "log"

    def written(self) -> int:
        """Lines of the file."""
        return (self.directory / "messages").read_bytes().count(b"\n")
