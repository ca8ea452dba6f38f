"""A terminal of the tests' own (tmux on a socket of its own), in which a program runs and is looked at."""

import itertools
import os
import shlex
import subprocess
import tempfile

from support.waiting import wait_until

_numbers = itertools.count(1)


class Terminal:
    """Runs `argv` in a window of that size; the window stays when the program ends, with its exit status."""

    def __init__(self, argv, width: int = 120, height: int = 30, env: dict | None = None, term: str = "tmux-256color"):
        self._directory = tempfile.TemporaryDirectory(prefix="tacho-tmux-")
        self._socket = f"{self._directory.name}/{next(_numbers)}"
        command = " ".join(map(shlex.quote, map(str, argv)))
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in {"TERM": term, **(env or {})}.items())
        self._tmux("-f", os.devnull, "new-session", "-d", "-x", str(width), "-y", str(height),
                   f"env {settings} {command}; status=$?; echo; echo ended with $status; exec cat")

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(["tmux", "-u", "-S", self._socket, *words], capture_output=True, text=True, timeout=10)
        if done.returncode != 0:
            raise RuntimeError(f"tmux {' '.join(words)}: {done.stderr}")
        return done.stdout

    @property
    def lines(self) -> list[str]:
        return self._tmux("capture-pane", "-p").splitlines()

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def press(self, *keys: str) -> None:
        """Keys as tmux names them: "q", "Down", "Escape" …"""
        self._tmux("send-keys", *keys)

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def wait_for(self, text: str, timeout: float = 10) -> None:
        try:
            wait_until(lambda: text in self.text, timeout, f"{text!r} is on the screen", interval=0.05)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; it shows:\n{self.text}") from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._tmux("kill-server")
        self._directory.cleanup()
