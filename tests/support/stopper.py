"""Stops one thread of a process, as a lock or a call into the kernel that does not return would."""

import contextlib
import ctypes
import os
import pathlib
import time

_SEIZE, _INTERRUPT = 0x4206, 0x4207  # PTRACE_…, linux/ptrace.h
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def thread_named(pid: int, name: str) -> int:
    """The thread of that name; the main thread has the program's."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int(task.name)
    raise ValueError(f"process {pid} has no thread {name}")


def _ptrace(request: int, thread: int) -> None:
    if _libc.ptrace(request, thread, None, None) != 0:
        raise OSError(ctypes.get_errno(), f"ptrace({request:#x}, {thread})")


@contextlib.contextmanager
def stopped(thread: int):
    """The thread stands still, wherever it is; it goes on when the block ends (PTRACE_DETACH) if it still lives."""
    _ptrace(_SEIZE, thread)
    _ptrace(_INTERRUPT, thread)
    deadline = time.monotonic() + 5
    while os.waitpid(thread, os.WNOHANG | 0x40000000)[0] != thread:  # __WALL
        if time.monotonic() > deadline:
            raise TimeoutError(f"thread {thread} does not stop")
    try:
        yield
    finally:
        try:
            _ptrace(17, thread)  # PTRACE_DETACH
        except OSError:  # killed: its process is only gone once we have taken note
            with contextlib.suppress(ChildProcessError):
                os.waitpid(thread, 0x40000000)
