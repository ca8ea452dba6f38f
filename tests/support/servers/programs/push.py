"""Answers a line and sends news unasked, 101 times; reads what has come before each. Argument: a port."""

import contextlib
import socket
import sys
import time

with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            connection.recv(100)
            connection.sendall(b"subscribed\n")
            for _ in range(101):
                time.sleep(0.005)
                with contextlib.suppress(BlockingIOError):
                    connection.recv(100, socket.MSG_DONTWAIT)
                connection.sendall(b"news\n")
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(100):
                pass
