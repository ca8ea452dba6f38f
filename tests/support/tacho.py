"""tacho as a child process."""

import contextlib
import json
import os
import pathlib
import re
import signal
import tempfile
import time

import yaml

from support import net, paths, protobuf
from support.cpu import cpu_seconds
from support.exposition import OPENMETRICS, TEXT, Change, Samples
from support.process import Process
from support.waiting import wait_until


# How the report of a build by the presets asan and tsan begins.
SANITIZER = re.compile(r"^.*(ERROR|WARNING): (Address|Thread|Leak)Sanitizer|^.*: runtime error: ", re.MULTILINE)


def target(name: str, cgroup: str, **more) -> dict:
    """One entry of `targets:` for a cgroup path or glob."""
    return {"name": name, "cgroup": cgroup, **more}


class Tacho:
    """Serves on a free port from the moment the constructor returns; leaving the `with` ends it by SIGTERM.

    `config` is YAML text, a dictionary, or None for no configuration at all.
    """

    farewell = None  # called with a tacho that ran to the end of a good test, before it ends

    def __init__(
        self, config: str | dict | None = None, *, port: int = 0, flags=(), prefix=(), program=paths.TACHO, start_timeout: float = 20
    ):
        self._named: set[str] = set()
        self._directory = tempfile.TemporaryDirectory(prefix="tacho-config-")
        self.config_file = pathlib.Path(self._directory.name) / "tacho.yaml"
        arguments = [paths.require(program), f"--web.listen-address=127.0.0.1:{port}", *flags]
        if config is not None:
            self.configure(config)
            arguments.append(f"--config.file={self.config_file}")
        self.process = Process(arguments, prefix=prefix)
        try:
            started = self.process.wait_for_line(r"listening on (127\.0\.0\.1:\d+)", timeout=start_timeout)
        except TimeoutError:
            self.kill()
            raise
        self.address = started.group(1)

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def web_pid(self) -> int:
        """The process that serves the network."""
        (web,) = (each["pid"] for each in self.targets()["processes"] if each["process"] == "web")
        return web

    def processes(self) -> list[int]:
        """All that belong to it: the collector first, then what it started."""
        found = [self.pid]
        for pid in found:
            for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
                found += map(int, task.read_text().split())
        return found

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def configure(self, config: str | dict) -> None:
        """Writes the configuration file; a running tacho sees it when it is told to reload."""
        self.config_file.write_text(config if isinstance(config, str) else yaml.safe_dump(config))
        if isinstance(config, dict):
            self._named.update(target["name"] for target in config.get("targets") or [])

    def http(self, path: str, **options):
        return net.exchange(self.address, path, **options)

    def text(self, accept: str = TEXT) -> str:
        status, _, body = self.http("/metrics", headers={"Accept": accept})
        if status != 200:
            raise OSError(f"/metrics answered {status}: {body[:200]!r}")
        return body.decode()

    def timed_text(self) -> tuple[str, float]:
        """The page and the seconds that it took."""
        began = time.monotonic()
        text = self.text()
        return text, time.monotonic() - began

    def scrape(self) -> Samples:
        return Samples.parse(self.text())

    def native(self, family: str, **labels: str):
        """The one native histogram of that name and these labels."""
        status, _, body = self.http("/metrics", headers={"Accept": protobuf.ACCEPT})
        metrics = [metric for found in protobuf.families(body) if found.name == family for metric in found.metric]
        chosen = [metric for metric in metrics if labels.items() <= protobuf.labels_of(metric).items()]
        if status != 200 or len(chosen) != 1:
            raise KeyError(f"{len(chosen)} histograms {family}{labels}, status {status}")
        return chosen[0].histogram

    def next_scrape(self) -> Samples:
        """The first that is answered: who is being killed may take a connection with him."""
        while True:
            try:
                return self.scrape()
            except OSError:
                time.sleep(0.01)

    def scrape_openmetrics(self) -> Samples:
        return Samples.parse(self.text(OPENMETRICS), openmetrics=True)

    def targets(self):
        return json.loads(self.http("/targets")[2])

    def own_targets(self) -> set[str]:
        """Targets that the test has named or made: what is discovered may belong to another test."""
        made = f"/tacho-test-{os.getpid()}-"
        return self._named | {row["target"] for row in self.targets()["targets"] if made in row["cgroup"]}

    def requests(self, name: str) -> int:
        return int(self.scrape().get("tacho_requests_total", target=name))

    def wait_for_target(self, name: str, timeout: float = 5) -> None:
        wait_until(lambda: self.scrape().has("tacho_requests_total", target=name), timeout, f"series of target {name}")

    def settled(self, name: str, timeout: float = 5) -> Samples:
        """A scrape after which the target's counters no longer move.

        A client has its reply a moment before the kernel reports the send to tacho: the call has not returned yet.
        """
        def moving(samples: Samples):
            return [
                samples.sum("tacho_requests_total", target=name),
                samples.sum("tacho_socket_operations_total", target=name),
            ]

        deadline = time.monotonic() + timeout
        last = self.scrape()
        while True:
            time.sleep(0.05)
            now = self.scrape()
            if moving(now) == moving(last):
                return now
            if time.monotonic() > deadline:
                raise TimeoutError(f"counters of {name} still move: {moving(last)} → {moving(now)}")
            last = now

    @contextlib.contextmanager
    def watch(self, name: str, **labels: str):
        """Yields a Change of the target that is filled in when the block ends and the counters stand still.

        The labels tell it apart from others of that name.
        """
        self.wait_for_target(name)
        change = Change(self.settled(name), Samples([]), name, **labels)
        yield change
        change.after = self.settled(name)

    def reload(self, by_signal: bool = False) -> int | None:
        """Asks to read the configuration again. By HTTP: waits and returns the status."""
        if by_signal:
            self.process.signal(signal.SIGHUP)
            return None
        return self.http("/-/reload", method="POST")[0]

    def descriptors(self) -> list[str]:
        """What its open file descriptors refer to."""
        found = []
        for entry in os.listdir(f"/proc/{self.pid}/fd"):
            with contextlib.suppress(FileNotFoundError):
                found.append(os.readlink(f"/proc/{self.pid}/fd/{entry}"))
        return found

    def resident_bytes(self) -> int:
        """Of all its processes; what they share counts once."""
        return self.written_bytes() + self._files()

    def written_bytes(self) -> int:
        """`resident_bytes` without program and libraries, of which the kernel keeps in memory what it likes."""
        proportional = 0
        for pid in self.processes():
            for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith(("Pss_Anon:", "Pss_Shmem:")):
                    proportional += int(line.split()[1]) * 1024
        return proportional

    def cpu_seconds(self) -> float:
        """Of all its processes."""
        return sum(cpu_seconds(pid) for pid in self.processes())

    def _files(self) -> int:
        """Program and libraries, as the process that has most of them in memory has them."""
        return max(
            sum(int(line.split()[1]) * 1024
                for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("RssFile:"))
            for pid in self.processes()
        )  # fmt: skip

    def kill(self) -> None:
        """SIGKILL: no chance to clean up."""
        self.process.signal(signal.SIGKILL)
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        try:
            if kind is None and self.farewell and self.process.running:
                self.farewell(self)
        finally:
            self._end(kind, error, trace)

    def _end(self, *error):
        try:
            self.process.__exit__(*error)
        finally:
            self._directory.cleanup()
        # Of a web process, too, whose end alone says little: it is started anew.
        if found := SANITIZER.search(self.process.output):
            raise AssertionError(f"a sanitizer of the build has found something:\n{self.process.output[found.start():]}")
