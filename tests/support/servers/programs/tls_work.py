"""A TLS server, a thread a connection: words come at once, `work` seconds for each of them later a line goes.

Arguments: port, certificate, key, work, session tickets after a TLS 1.3 handshake.
"""

import contextlib
import socket
import ssl
import sys
import threading
import time


def serve(connection: socket.socket, context: ssl.SSLContext, work: float):
    with contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True) as secured:
        while words := secured.recv(1024).split():
            time.sleep(work * len(words))
            secured.sendall(b"done\n")


def main(port: str, certificate: str, key: str, work: str, tickets: str):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    context.num_tickets = int(tickets)
    with socket.create_server(("127.0.0.1", int(port)), backlog=128) as listener:
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=serve, args=(connection, context, float(work)), daemon=True).start()


main(*sys.argv[1:])
