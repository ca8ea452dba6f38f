"""Servers under test. Each is a context manager that returns once the server accepts connections.

`prefix` are the words of `Cgroup.prefix`: the server runs in that cgroup from its first instruction.
"""

from support.servers.apache import Apache
from support.servers.caddy import Caddy
from support.servers.dns import Dnsmasq, Knot
from support.servers.exact import ExactServer, UringServer
from support.servers.gnutls import GnutlsServer
from support.servers.haproxy import HAProxy
from support.servers.mariadb import MariaDB
from support.servers.memcached import Memcached
from support.servers.mosquitto import Mosquitto
from support.servers.nats import NatsServer
from support.servers.nginx import Nginx
from support.servers.ntp import Chrony
from support.servers.postgres import Postgres
from support.servers.python import AsyncioEcho, Gunicorn, Script, TlsWork, Waitress
from support.servers.redis import Redis
from support.servers.rsyslog import Rsyslog
from support.servers.work import Burn, Go, Java, Node, NodeTls

__all__ = [
    "Apache", "AsyncioEcho", "Burn", "Caddy", "Chrony", "Dnsmasq", "ExactServer", "GnutlsServer", "Go", "Gunicorn", "HAProxy", "Java",
    "Knot", "MariaDB", "Memcached", "Mosquitto", "NatsServer", "Nginx", "Node", "NodeTls", "Postgres", "Redis", "Rsyslog", "Script",
    "TlsWork", "UringServer", "Waitress",
]  # fmt: skip
