"""Clients that ask for something over and over, and read all of it: python -m support.flood PORT CLIENTS REQUEST.

A program of its own, of one thread that reads into one buffer: what it costs is little beside what it makes others do, and
it has no lock in common with who measures. The last line that it writes is how many answers it had.
"""

import os
import selectors
import socket
import sys


class Client:
    """One of them; with its answer it begins anew."""

    def __init__(self, selector, port: int, request: bytes):
        self._selector, self._port, self._request = selector, port, request
        self.whole = 0
        self._begin()

    def _begin(self):
        self._socket = socket.socket()
        self._socket.setblocking(False)
        self._socket.connect_ex(("127.0.0.1", self._port))
        self._selector.register(self._socket, selectors.EVENT_WRITE, self)

    def step(self, events: int, buffer: bytearray):
        try:
            if events & selectors.EVENT_WRITE:
                self._socket.send(self._request)
                self._selector.modify(self._socket, selectors.EVENT_READ, self)
                return
            if self._socket.recv_into(buffer) > 0:
                return
            self.whole += 1
        except BlockingIOError:
            return
        except OSError:
            pass  # it was refused, or cut off
        self._selector.unregister(self._socket)
        self._socket.close()
        self._begin()


def main():
    port, clients, request = int(sys.argv[1]), int(sys.argv[2]), os.fsencode(sys.argv[3])
    buffer = bytearray(1 << 20)
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin, selectors.EVENT_READ)
        crowd = [Client(selector, port, request) for _ in range(clients)]
        print("all have begun", flush=True)
        while True:
            for key, events in selector.select():
                if key.data is None:  # whoever started us wants us to end
                    print(sum(client.whole for client in crowd), flush=True)
                    return
                key.data.step(events, buffer)


if __name__ == "__main__":
    main()
