"""Crowds on a machine, each as a program: `python3 crowds.py KIND COUNT [RATE] [DIRECTORY]`. When it is over it says what it came to.

cgroups    makes and removes COUNT cgroups in DIRECTORY, one at a time, RATE a second at most
forks      has COUNT children that end at once, RATE a second at most
execs      runs COUNT programs, RATE a second at most
threads    has COUNT threads that end at once, RATE a second at most
listeners  listens on COUNT ports of 127.0.0.1 until its standard input ends; by as many processes as its descriptors need, or
           by one in each of the cgroups d0, d1 … of DIRECTORY
"""

import contextlib
import os
import socket
import sys
import threading
import time

EACH = 900  # ports of a process: no limit has to be raised


def paced(count: str, rate: str):
    """0 … count − 1, each when it is due."""
    begun = time.monotonic()
    for number in range(int(count)):
        if (early := begun + number / float(rate) - time.monotonic()) > 0.005:
            time.sleep(early)
        yield number


def cgroups(count: str, rate: str, directory: str) -> None:
    for number in paced(count, rate):
        os.mkdir(f"{directory}/m{number}")
        os.rmdir(f"{directory}/m{number}")


def forks(count: str, rate: str) -> None:
    for _ in paced(count, rate):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)


def execs(count: str, rate: str) -> None:
    for _ in paced(count, rate):
        os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)


def threads(count: str, rate: str) -> None:
    for _ in paced(count, rate):
        one = threading.Thread(target=bool)
        one.start()
        one.join()


def listeners(number: str, directory: str = "") -> None:
    count = int(number)
    ready, told = os.pipe()
    each = 1 if directory else EACH
    for begun in range(0, count, each):
        mine = min(each, count - begun)
        if os.fork() == 0:
            if directory:
                with open(f"{directory}/d{begun}/cgroup.procs", "w") as file:
                    file.write("0")
            with contextlib.ExitStack() as stack:
                for _ in range(mine):
                    server = stack.enter_context(socket.socket())
                    server.bind(("127.0.0.1", 0))
                    server.listen(1)
                os.write(told, b".")
                sys.stdin.buffer.raw.read(1)
                os._exit(0)
        os.read(ready, 1)
    print("listening", flush=True)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


if __name__ == "__main__":
    kind, *arguments = sys.argv[1:]
    started = time.monotonic()
    {"cgroups": cgroups, "forks": forks, "execs": execs, "threads": threads, "listeners": listeners}[kind](*arguments)
    print(f"{arguments[0]} in {time.monotonic() - started:.1f} s", flush=True)
