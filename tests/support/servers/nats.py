"""nats-server, a broker that pushes, asks its clients for signs of life, and carries requests to services."""

from support.servers.base import Server


class NatsServer(Server):
    name = "nats"
    PING_INTERVAL = 1  # seconds; its default is two minutes

    def start(self):
        configuration = self.directory / "nats.conf"
        configuration.write_text(
            f'host: 127.0.0.1\nport: {self.port}\nping_interval: "{self.PING_INTERVAL}s"\nping_max: 100\n'
        )
        return self._start(["nats-server", "-c", configuration])
