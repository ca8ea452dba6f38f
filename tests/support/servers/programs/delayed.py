"""delayed.py PORT: answers each HTTP request after a delay of milliseconds, which a request for /delay/MS sets (0 at first)."""

import asyncio
import sys

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"
_delay = 0.0


async def serve(reader, writer):
    global _delay
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            path = head.split()[1].decode()
            if path.startswith("/delay/"):
                _delay = int(path.rpartition("/")[2]) / 1000
            elif _delay:
                await asyncio.sleep(_delay)
            writer.write(_ANSWER)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()


asyncio.run(main())
