"""An asyncio HTTP server: 200 for a request and its body; after "Upgrade:" it sends back what comes. Argument: a port."""

import asyncio
import contextlib
import re
import sys


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if re.search(rb"(?im)^upgrade:", head):
                break
            length = re.search(rb"(?im)^content-length: *(\d+)", head)
            await reader.readexactly(int(length[1]) if length else 0)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        while part := await reader.read(65536):
            writer.write(part)
    writer.close()


async def main(port: str):
    await (await asyncio.start_server(serve, "127.0.0.1", int(port))).serve_forever()


asyncio.run(main(sys.argv[1]))
