"""Load clients. Each returns what the *client* counted, never what was asked of it."""

from support.clients.ab import ab
from support.clients.counted import Counted
from support.clients.dnsperf import dnsperf
from support.clients.exact import ExactBatches, ExactLoad, exact
from support.clients.mariadb_slap import mariadb_slap
from support.clients.memcslap import memcslap
from support.clients.pgbench import pgbench
from support.clients.redis_benchmark import redis_benchmark
from support.clients.wrk import wrk

__all__ = [
    "Counted", "ExactBatches", "ExactLoad", "ab", "dnsperf", "exact", "mariadb_slap", "memcslap", "pgbench",
    "redis_benchmark", "wrk",
]  # fmt: skip
