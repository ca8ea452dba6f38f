"""Replies to an invitation with three datagrams, as a telephone does (SIP), to all else with one. Argument: a port."""

import socket
import sys

with socket.socket(type=socket.SOCK_DGRAM) as server:
    server.bind(("127.0.0.1", int(sys.argv[1])))
    print("ready", flush=True)
    while True:
        request, client = server.recvfrom(2000)
        for reply in (b"100 Trying", b"180 Ringing", b"200 OK")[: 3 if request.startswith(b"INVITE") else 1]:
            server.sendto(reply, client)
