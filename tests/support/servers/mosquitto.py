"""mosquitto, a broker of MQTT, for everybody."""

from support.servers.base import Server


class Mosquitto(Server):
    name = "mosquitto"

    def start(self):
        configuration = self.directory / "mosquitto.conf"
        configuration.write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\nuser root\n")
        return self._start(["mosquitto", "-c", configuration])
