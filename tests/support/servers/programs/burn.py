"""An HTTP server on one event loop: the path's number is how many milliseconds on a CPU a request takes."""

import asyncio
import sys
import time


class Connection(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.unread = transport, b""

    def data_received(self, data):
        *heads, self.unread = (self.unread + data).split(b"\r\n\r\n")
        for head in heads:
            milliseconds = float(head.split(b" ")[1].removeprefix(b"/"))
            # Of this thread's own time: what others take, and what a quota keeps from it, does not count.
            end = time.thread_time() + milliseconds / 1000
            while time.thread_time() < end:
                pass
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")


async def main(port: int):
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", port)
    await server.serve_forever()


asyncio.run(main(int(sys.argv[1])))
