"""An asyncio server for exact_client: 64 bytes come, 64 go.

Argument: a port, the path of a unix socket, or `listening=FD` or `connections=FD`, of a listening socket that was
inherited or of a unix socket over which connections come (SCM_RIGHTS).
"""

import asyncio
import contextlib
import socket
import sys

MESSAGE = 64


async def serve(reader, writer):
    with contextlib.suppress(asyncio.IncompleteReadError):
        while True:
            writer.write(await reader.readexactly(MESSAGE))
            await writer.drain()
    writer.close()


async def serve_handed_over(descriptor: int):
    """Each byte that comes has a connection with it."""
    source = socket.socket(fileno=descriptor)
    loop = asyncio.get_running_loop()
    tasks = set()
    readable = asyncio.Event()
    loop.add_reader(source, readable.set)
    while True:
        await readable.wait()
        readable.clear()
        data, descriptors, _, _ = socket.recv_fds(source, 1, 1)
        if not data:
            return
        for connection in descriptors:
            streams = await asyncio.open_connection(sock=socket.socket(fileno=connection))
            task = asyncio.create_task(serve(*streams))
            tasks.add(task)
            task.add_done_callback(tasks.discard)


async def main(where: str):
    kind, _, descriptor = where.partition("=")
    if kind == "connections":
        print("listening", where, flush=True)
        return await serve_handed_over(int(descriptor))
    if kind == "listening":
        server = await asyncio.start_server(serve, sock=socket.socket(fileno=int(descriptor)))
    elif where.isdigit():
        server = await asyncio.start_server(serve, "127.0.0.1", int(where))
    else:
        server = await asyncio.start_unix_server(serve, where)
    print("listening", where, flush=True)
    await server.serve_forever()


asyncio.run(main(sys.argv[1]))
