"""An asyncio server for exact_client: 64 bytes come, 64 go.

Arguments: a port or the path of a unix socket; then, of an inherited socket, nothing or one of
listening=FD     it listens already
connections=FD   connections come over it (SCM_RIGHTS)
handing_over=FD  accepted connections are sent over it, to be served by another process
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
    source.setblocking(False)
    loop = asyncio.get_running_loop()
    tasks = set()

    async def take_over(connection: int):
        await serve(*await asyncio.open_connection(sock=socket.socket(fileno=connection)))

    def receive():
        _, descriptors, _, _ = socket.recv_fds(source, 1, 1)
        for connection in descriptors:
            task = loop.create_task(take_over(connection))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    loop.add_reader(source, receive)
    announce()
    await loop.create_future()


async def hand_over(where: str, descriptor: int):
    channel = socket.socket(fileno=descriptor)
    listener = socket.create_server(("127.0.0.1", int(where)))
    listener.setblocking(False)
    announce()
    while True:
        connection, _ = await asyncio.get_running_loop().sock_accept(listener)
        with connection:
            socket.send_fds(channel, [b"c"], [connection.fileno()])


def announce():
    print("listening", flush=True)


async def main(where: str, inherited: str = ""):
    kind, _, descriptor = inherited.partition("=")
    if kind == "connections":
        return await serve_handed_over(int(descriptor))
    if kind == "handing_over":
        return await hand_over(where, int(descriptor))
    if kind == "listening":
        server = await asyncio.start_server(serve, sock=socket.socket(fileno=int(descriptor)))
    elif where.isdigit():
        server = await asyncio.start_server(serve, "127.0.0.1", int(where))
    else:
        server = await asyncio.start_unix_server(serve, where)
    announce()
    await server.serve_forever()


asyncio.run(main(*sys.argv[1:]))
