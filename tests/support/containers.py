"""Real containers: images by buildah, containers by podman and runc, in a storage of the tests' own.

Nothing of the machine's own images and containers is seen or touched. Containers share the machine's network.
"""

import contextlib
import json
import os
import pathlib
import shutil
import tempfile

from support.cgroup import cgroup2_mount
from support.process import Process, run
from support.waiting import wait_until

# No raised limits: this has to work without CAP_SYS_RESOURCE.
LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"]


def why_not() -> str | None:
    """Why no container can be run here; None if one can."""
    for program in ("podman", "buildah", "runc"):
        if shutil.which(program) is None:
            return f"{program} is not installed: deploy/install-deps e2e"
    with Storage() as storage, tempfile.TemporaryDirectory() as context:
        directory = pathlib.Path(context)
        collect("/bin/true", directory / "root")
        (directory / "Dockerfile").write_text('FROM scratch\nCOPY root /\nENTRYPOINT ["/usr/bin/true"]\n')
        try:
            storage.build(directory, "true")
            storage.cli("run", "--rm", *storage.run_options, "true")
        except RuntimeError as error:
            return f"podman cannot run a container here: {str(error).strip().splitlines()[-1]}"
    return None


def collect(program: str | pathlib.Path, root: pathlib.Path, *, inventory: bool = False) -> None:
    """The program with its libraries in `root`, as for tacho's own image, which also has an inventory of what is in it."""
    options = [] if inventory else ["--without-inventory"]
    run([pathlib.Path(__file__).resolve().parents[2] / "deploy" / "image" / "collect", *options, program, root])


class Storage:
    """Images and containers in a temporary directory; leaving the `with` removes all of them."""

    def __init__(self):
        self._directory = tempfile.TemporaryDirectory(prefix="tacho-containers-")
        self.root = pathlib.Path(self._directory.name) / "storage"
        self._place = ["--root", self.root, "--runroot", f"{self._directory.name}/run"]

    # On this machine's network.
    run_options = ["--net", "host", *LIMITS]

    def command(self, *arguments) -> list:
        """The words of podman's command."""
        return ["podman", *self._place, "--runtime", "runc", *arguments]

    def cli(self, *arguments, timeout: float = 60) -> str:
        """What podman printed; raises RuntimeError with it when it fails."""
        return run(self.command(*arguments), timeout=timeout)

    def build(self, context: pathlib.Path, tag: str, *options, timeout: float = 120) -> str:
        """Builds the context's Dockerfile, in Docker's format since that has a place for HEALTHCHECK."""
        options = ["--isolation", "chroot", "--format", "docker", "--layers=false", *options, "--tag", tag]
        # timeout(1) ends all processes of the build, in whatever container they are.
        return run(["timeout", "--kill-after=10", str(timeout), "buildah", *self._place, "bud", *options, context],
                   timeout=timeout + 20)  # fmt: skip

    def remove(self, container: str) -> None:
        """Also one that is gone already."""
        self.cli("rm", "--force", "--ignore", "--time", "0", container)

    def image(self, tag: str) -> dict:
        """What `podman image inspect` knows of it."""
        return json.loads(self.cli("image", "inspect", tag))[0]

    def import_root(self, root: pathlib.Path, tag: str) -> None:
        """An image of one layer with the content of a directory."""
        working = run(["buildah", *self._place, "from", "scratch"]).strip().splitlines()[-1]
        run(["buildah", *self._place, "add", "--quiet", working, root, "/"], timeout=300)
        run(["buildah", *self._place, "commit", "--quiet", "--rm", working, tag], timeout=300)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.cli("rm", "--all", "--force", "--time", "0")
        self.cli("rmi", "--all", "--force")
        for mount in pathlib.Path("/proc/self/mounts").read_text().splitlines():
            place = mount.split()[1]
            if place.startswith(self._directory.name):
                run(["umount", place])
        self._directory.cleanup()


def _removed(directory: pathlib.Path) -> bool:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        directory.rmdir()
    return True


class Pod:
    """A cgroup that its containers share, as the kubelet makes one for each pod; they must be gone before it."""

    def __init__(self, name: str):
        self.path = f"/tacho-test-{os.getpid()}-{name}"
        self.options = ["--cgroup-parent", self.path]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # podman makes it in every hierarchy that there is, with a cgroup for monitors, and leaves it there.
        for hierarchy in {cgroup2_mount(), *pathlib.Path("/sys/fs/cgroup").iterdir()}:
            own = hierarchy / self.path.lstrip("/")
            for directory in (own / "conmon", own):
                wait_until(lambda directory=directory: _removed(directory), 30, f"{directory} is empty")


class Container:
    """A container that runs from the moment the constructor returns until the `with` is left, by podman or by Docker."""

    def __init__(self, storage: Storage, image: str, name: str, *arguments, options=()):
        self.storage, self.name = storage, name
        # The id stands in a file: warnings of podman's are mixed with what it prints.
        with tempfile.TemporaryDirectory() as directory:
            place = pathlib.Path(directory) / "id"
            storage.cli("run", "--detach", *storage.run_options, "--cidfile", place, "--name", name,
                           *options, image, *arguments)  # fmt: skip
            self.id = place.read_text().strip()

    @property
    def pid(self) -> int:
        """Of its first process, as this machine numbers it."""
        return int(self.storage.cli("inspect", "--format", "{{.State.Pid}}", self.id).strip().splitlines()[-1])

    @property
    def log(self) -> str:
        return self.storage.cli("logs", self.id)

    def wait_for_log(self, text: str, timeout: float = 20) -> str:
        """The first line of its output that has the text."""
        return wait_until(
            lambda: next((line for line in self.log.splitlines() if text in line), None),
            timeout,
            f"{self.name} says {text!r}",
            interval=0.1,
        )

    def execute(self, *command) -> tuple[int, str]:
        """Exit status and output of a command inside."""
        process = Process(self.storage.command("exec", self.id, *command))
        return process.wait(), process.output

    def stop(self, seconds: int = 5) -> None:
        """Asks it to end, and removes it."""
        self.storage.cli("stop", "--time", seconds, self.id)
        self.storage.remove(self.id)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.storage.remove(self.id)
