"""Crowds on a machine, each as a program: `python3 crowds.py KIND COUNT [RATE] [DIRECTORY] [KEPT]`, until its standard input ends,
but COUNT at the least. When it is over it says what it came to.

cgroups    makes cgroups in DIRECTORY, RATE a second at most, and removes each when KEPT more have been made; KEPT is 0 if not given
forks      has children that end at once, RATE a second at most
execs      runs programs, RATE a second at most
threads    has threads that end at once, RATE a second at most
listeners  listens on COUNT ports of 127.0.0.1; by as many processes as its descriptors need, or by one in each of the cgroups
           d0, d1 … of DIRECTORY
"""

import collections
import contextlib
import os
import select
import socket
import sys
import threading
import time

EACH = 900  # ports of a process: no limit has to be raised


def input_has_ended() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])


def paced(count: str, rate: str, member) -> int:
    """Calls `member` with 0 … count − 1 and further, each when it is due. Returns how often."""
    begun = time.monotonic()
    number = 0
    while number < int(count) or not input_has_ended():
        if (early := begun + number / float(rate) - time.monotonic()) > 0.005:
            time.sleep(early)
        member(number)
        number += 1
    return number


def cgroups(count: str, rate: str, directory: str, kept: str = "0") -> int:
    there = collections.deque()

    def member(number: int) -> None:
        there.append(f"{directory}/m{number}")
        os.mkdir(there[-1])
        if len(there) > int(kept):
            os.rmdir(there.popleft())

    made = paced(count, rate, member)
    for directory_of_one in there:
        os.rmdir(directory_of_one)
    return made


def forks(count: str, rate: str) -> int:
    def member(_) -> None:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)

    return paced(count, rate, member)


def execs(count: str, rate: str) -> int:
    return paced(count, rate, lambda _: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0))


def threads(count: str, rate: str) -> int:
    def member(_) -> None:
        one = threading.Thread(target=bool)
        one.start()
        one.join()

    return paced(count, rate, member)


def listeners(number: str, directory: str = "") -> int:
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
    return count


if __name__ == "__main__":
    kind, *arguments = sys.argv[1:]
    started = time.monotonic()
    kinds = {"cgroups": cgroups, "forks": forks, "execs": execs, "threads": threads, "listeners": listeners}
    came_to = kinds[kind](*arguments)
    print(f"{came_to} in {time.monotonic() - started:.1f} s", flush=True)
