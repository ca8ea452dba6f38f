"""Sends back each piece of what comes, as it comes; what begins with `peek` is answered unread, and the connection closed. Argument: a port."""

import socket
import sys

with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
    while True:
        client, _ = listener.accept()
        with client:
            if client.recv(4, socket.MSG_PEEK) == b"peek":
                client.sendall(b"busy\n")
                continue
            while piece := client.recv(65536):
                client.sendall(piece)
