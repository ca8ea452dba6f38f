"""Servers under test. Each is a context manager that returns once the server accepts connections.

`prefix` are the words of `Cgroup.prefix`: the server runs in that cgroup from its first instruction.
"""

from support.servers.exact import ExactServer
from support.servers.memcached import Memcached
from support.servers.nginx import Nginx
from support.servers.postgres import Postgres
from support.servers.redis import Redis

__all__ = ["ExactServer", "Memcached", "Nginx", "Postgres", "Redis"]
