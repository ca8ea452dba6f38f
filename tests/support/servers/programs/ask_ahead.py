"""A client of redis that sends three commands before it reads the three answers. Arguments: a port, how many times."""

import socket
import sys

with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    answers = connection.makefile("rb")
    for _ in range(int(sys.argv[2])):
        for _ in range(3):
            connection.sendall(b"PING\r\n")
        for _ in range(3):
            assert answers.readline() == b"+PONG\r\n"
