"""Stops one thread of a process, as a lock or a call into the kernel that does not return would."""

import contextlib
import ctypes
import os
import pathlib
import signal
import struct
import time

from support.waiting import wait_until

_SEIZE, _INTERRUPT, _NEXT_CALL, _DETACH, _SYSCALL_INFO = 0x4206, 0x4207, 24, 17, 0x420E  # PTRACE_…, linux/ptrace.h
_WRITE = {"x86_64": 1, "aarch64": 64}[os.uname().machine]
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def thread_named(pid: int, name: str) -> int:
    """The thread of that name, of the process or of those that it started; the main thread has the program's.

    A thread names itself when it first runs.
    """
    return wait_until(lambda: _find_thread(pid, name), 20, f"process {pid} has a thread {name}")


def _find_thread(pid: int, name: str) -> int | None:
    processes = [pid]
    for process in processes:
        for task in pathlib.Path(f"/proc/{process}/task").iterdir():
            if (task / "comm").read_text().strip() == name:
                return int(task.name)
            processes += map(int, (task / "children").read_text().split())
    return None


def _state(thread: int) -> str:
    return pathlib.Path(f"/proc/{thread}/stat").read_text().rpartition(")")[2].split()[0]


def _ptrace(request: int, thread: int, address: int | None = None, data: int | None = None) -> None:
    if _libc.ptrace(request, thread, address, data) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace({request:#x}, {thread})")


def _wait_for_stop(thread: int) -> int:
    """Returns the signal that the thread stopped for and is to get; 0 if it stopped for us."""
    deadline = time.monotonic() + 5
    while True:
        stopped, status = os.waitpid(thread, os.WNOHANG | 0x40000000)  # __WALL
        if stopped == thread:
            number = os.WSTOPSIG(status)
            return 0 if number & 0x7F == signal.SIGTRAP else number
        if time.monotonic() > deadline:
            raise TimeoutError(f"thread {thread} does not stop")


def _in_write(thread: int) -> bool:
    """Whether a thread that stopped at a system call begins to write to standard error."""
    call = struct.Struct("=B3xIQQ7Q")  # struct ptrace_syscall_info of an entry
    buffer = ctypes.create_string_buffer(call.size)
    _ptrace(_SYSCALL_INFO, thread, call.size, ctypes.addressof(buffer))
    op, _, _, _, number, descriptor, *_ = call.unpack(buffer.raw)
    if op != 1:  # PTRACE_SYSCALL_INFO_ENTRY
        return False
    target = pathlib.Path(f"/proc/{thread}/fd")
    return number == _WRITE and (target / str(descriptor)).readlink() == (target / "2").readlink()


@contextlib.contextmanager
def stopped(thread: int, in_log_when=None):
    """The thread stands still, where it waits; it goes on when the block ends (PTRACE_DETACH) if it still lives.

    `in_log_when`: called with the thread running, what makes it log; it then stands still as it writes the line.
    """
    # Who runs may be in the middle of an allocation, for whose lock all others would wait: that is another failure.
    wait_until(lambda: _state(thread) == "S", 20, f"thread {thread} waits")
    _ptrace(_SEIZE, thread, data=1)  # PTRACE_O_TRACESYSGOOD
    _ptrace(_INTERRUPT, thread)
    _wait_for_stop(thread)
    if in_log_when:
        in_log_when()
        number = 0
        while number or not _in_write(thread):
            _ptrace(_NEXT_CALL, thread, data=number)
            number = _wait_for_stop(thread)
    try:
        yield
    finally:
        try:
            _ptrace(_DETACH, thread)
        except OSError:  # killed: its process is only gone once we have taken note
            with contextlib.suppress(ChildProcessError):
                os.waitpid(thread, 0x40000000)
