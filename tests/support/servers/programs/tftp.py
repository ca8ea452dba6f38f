"""Replies to each datagram from a socket of its own, as TFTP does. Argument: a port."""

import socket
import sys

with socket.socket(type=socket.SOCK_DGRAM) as server:
    server.bind(("127.0.0.1", int(sys.argv[1])))
    print("ready", flush=True)
    while True:
        _, client = server.recvfrom(100)
        with socket.socket(type=socket.SOCK_DGRAM) as other:
            other.bind(("127.0.0.1", 0))
            other.sendto(b"data", client)
