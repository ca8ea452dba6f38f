"""Sends back what comes, from the socket to a pipe and to the socket again. Argument: a port."""

import os
import socket
import sys

inward, outward = os.pipe()
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
    while True:
        connection, _ = listener.accept()
        with connection:
            while size := os.splice(connection.fileno(), outward, 65536):
                os.splice(inward, connection.fileno(), size)
