"""A child process whose output is read all the time and can be waited for, line by line."""

import os
import re
import signal
import subprocess
import threading
import time


class Process:
    """Starts `argv`; `with` ends it. `prefix` are words before the command, as `Cgroup.prefix` gives them.

    It inherits the descriptors in `pass_fds` under their numbers.
    """

    def __init__(
        self, argv, *, prefix=(), stdin=None, env=None, cwd=None, stop_signal=signal.SIGTERM, user=None, pass_fds=()
    ):
        self.argv = [str(word) for word in argv]
        self.stop_signal = stop_signal
        self._news = threading.Condition()
        self._lines: list[str] = []
        as_user = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        # Whoever started the tests in the background has them ignore SIGINT; a program that is to end on it must not.
        self._popen = subprocess.Popen(
            ["env", "--default-signal=INT", *prefix, *as_user, *self.argv],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, "LC_ALL": "C.UTF-8", **(env or {})},
            cwd=cwd,
            pass_fds=pass_fds,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._popen.stdout:
            with self._news:
                self._lines.append(line.rstrip("\n"))
                self._news.notify_all()
        with self._news:
            self._reader = None
            self._news.notify_all()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def running(self) -> bool:
        return self._popen.poll() is None

    @property
    def output(self) -> str:
        """Standard output and standard error so far."""
        with self._news:
            return "\n".join(self._lines)

    def wait_for_line(self, pattern: str, timeout: float = 10, start: int = 0) -> re.Match:
        """The first match of the regular expression in a line from number `start` on."""
        expression = re.compile(pattern)
        deadline = time.monotonic() + timeout
        with self._news:
            looked = start
            while True:
                for line in self._lines[looked:]:
                    looked += 1
                    if match := expression.search(line):
                        return match
                left = deadline - time.monotonic()
                if self._reader is None or left <= 0:
                    why = "ended" if self._reader is None else f"printed in {timeout} s"
                    text = "\n".join(self._lines[-30:])
                    raise TimeoutError(f"{self.argv[0]} {why} without a line matching {pattern!r}; it said:\n{text}")
                self._news.wait(left)

    @property
    def line_count(self) -> int:
        with self._news:
            return len(self._lines)

    def tell(self, line: str) -> None:
        """Writes a line to the standard input, which must be a pipe."""
        self._popen.stdin.write(line + "\n")
        self._popen.stdin.flush()

    def close_stdin(self) -> None:
        self._popen.stdin.close()

    def signal(self, number: int) -> None:
        self._popen.send_signal(number)

    def wait(self, timeout: float = 30) -> int:
        """The exit status, once the process has ended and all its output is read."""
        try:
            status = self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self.argv[0]} did not end within {timeout} s; it said:\n{self.output}") from None
        reader = self._reader
        if reader is not None:
            reader.join(timeout=1)  # a grandchild may keep the pipe open
        return status

    def stop(self, timeout: float = 10) -> int:
        """Asks the process to end, kills it when it does not, and returns its exit status."""
        if self.running:
            self.signal(self.stop_signal)
        try:
            return self.wait(timeout)
        except TimeoutError:
            self._popen.kill()
            self.wait(timeout)
            raise

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if self._popen.stdin and not self._popen.stdin.closed:
            self._popen.stdin.close()
        if kind is None:
            self.stop()
        else:
            self._popen.kill()
            self._popen.wait()


def run(argv, *, prefix=(), timeout: float = 120, env=None, check: bool = True, user=None) -> str:
    """Runs a command to its end and returns what it printed; raises when it fails."""
    process = Process(argv, prefix=prefix, env=env, user=user)
    try:
        status = process.wait(timeout)
    except TimeoutError:
        process.signal(signal.SIGKILL)
        process.wait()
        raise
    if check and status != 0:
        raise RuntimeError(f"{' '.join(process.argv)} ended with {status}:\n{process.output}")
    return process.output
