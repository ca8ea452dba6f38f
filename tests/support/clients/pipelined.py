"""A Redis client that sends several commands in one segment and reads all their answers before the next."""

import socket
import time

from support.clients.counted import Counted


def pipelined_pings(port: int, batches: int, batch: int = 16, rate: float = 0) -> Counted:
    """`rate` batches a second on a fixed schedule; 0: as fast as answers come."""
    request, reply = b"PING\r\n" * batch, b"+PONG\r\n" * batch
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        started = time.monotonic()
        for number in range(batches):
            if rate:
                time.sleep(max(0.0, started + number / rate - time.monotonic()))
            connection.sendall(request)
            got = b""
            while len(got) < len(reply):
                piece = connection.recv(len(reply) - len(got))
                if not piece:
                    raise ConnectionError("the server closed the connection")
                got += piece
            if got != reply:
                raise ValueError(f"unexpected answer: {got[:80]!r}")
        return Counted(client="pipelined", requests=batches * batch, seconds=time.monotonic() - started)
