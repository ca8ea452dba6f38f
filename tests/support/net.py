"""Loopback sockets, and networks of their own."""

import contextlib
import http.client
import os
import socket
import ssl

from support.process import run


_given: set[int] = set()


def free_port() -> int:
    """A TCP port on 127.0.0.1 that nobody listens on at the moment, another one each time."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        # The kernel gives a port again at once, and a server that asks for two cannot listen on one twice.
        if port not in _given:
            _given.add(port)
            return port


def listening_ports() -> set[int]:
    """Ports of this network name space on which TCP is listened, asked of /proc: no server sees a connection."""
    return _ports("tcp", "0A")


def udp_ports() -> set[int]:
    """Ports that an unconnected UDP socket is bound to, asked in the same way."""
    return _ports("udp", "07")


def _ports(protocol: str, wanted: str) -> set[int]:
    ports = set()
    for table in (f"/proc/net/{protocol}", f"/proc/net/{protocol}6"):
        with open(table) as lines:
            next(lines)
            for line in lines:
                _, local, _, state, *_ = line.split()
                if state == wanted:
                    ports.add(int(local.rpartition(":")[2], 16))
    return ports


def listens(port: int) -> bool:
    """Does somebody listen there?"""
    return port in listening_ports()


def listens_everywhere(table: str, port: int) -> bool:
    """Does somebody listen there on all addresses, by a network's /proc/net/tcp? No connection is made: tacho would count it."""
    return f"00000000:{port:04X} 00000000:0000 0A" in table


def exchange(
    address: str, path: str, method: str = "GET", headers: dict | None = None, timeout: float = 10, tls: ssl.SSLContext | None = None
):
    """One HTTP exchange with HOST:PORT. Returns (status, headers, body as bytes)."""
    host, _, port = address.rpartition(":")
    if tls:
        connection = http.client.HTTPSConnection(host, int(port), timeout=timeout, context=tls)
    else:
        connection = http.client.HTTPConnection(host, int(port), timeout=timeout)
    try:
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


@contextlib.contextmanager
def own_network(address: str = "", gateway: str = ""):
    """Words before a command that put it into a new network namespace, which the machine reaches at `address`, if one is given."""
    name = f"tacho-test-{os.getpid()}"
    link = name[-15:]  # IFNAMSIZ
    run(["ip", "netns", "add", name])
    try:
        reached = (
            f"ip link add {link} type veth peer name eth0 netns {name}",
            f"ip address add {gateway}/30 dev {link}",
            f"ip link set {link} up",
            f"ip -n {name} address add {address}/30 dev eth0",
            f"ip -n {name} link set eth0 up",
        )
        for command in (*(reached if address else ()), f"ip -n {name} link set lo up"):
            run(command.split())
        yield ["ip", "netns", "exec", name]
    finally:
        run(["ip", "netns", "delete", name])
