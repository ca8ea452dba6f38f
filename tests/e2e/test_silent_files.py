"""File systems that have fallen silent, and files that are none, in the places where names of containers are looked for."""

import pathlib
import sys

import pytest

from support.cgroup import Cgroup
from support.servers import ExactServer
from support.tacho import Tacho

USER = 61234
ID = "5" * 64

# Before a command: of this mount namespace alone, homes among which one is on a file system that answers nothing. Whoever
# serves it would have its descriptor.
SILENT_HOME = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def check(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
check(libc.unshare(0x20000))  # CLONE_NEWNS
check(libc.mount(b"none", b"/", None, 1 << 18 | 1 << 14, None))  # MS_PRIVATE, MS_REC
check(libc.mount(b"none", b"/home", b"tmpfs", 0, None))
storage = "/home/owner/.local/share/containers/storage/overlay-containers"
os.makedirs(storage)
os.chown("/home/owner", int(sys.argv[1]), 0)
with open(storage + "/containers.json", "w") as file:
    file.write('[{"id": "%s", "names": ["named"]}]' % sys.argv[2])
os.mkdir("/home/silent")
silent = os.open("/dev/fuse", os.O_RDWR)
os.set_inheritable(silent, True)
check(libc.mount(b"silent", b"/home/silent", b"fuse", 0, b"fd=%d,rootmode=40000,user_id=0,group_id=0" % silent))
os.execvp(sys.argv[3], sys.argv[3:])
"""


@pytest.fixture
def silent_home():
    """Words before a command that has such a home."""
    if not pathlib.Path("/dev/fuse").exists():
        pytest.skip("this kernel has no FUSE")
    return [sys.executable, "-c", SILENT_HOME, str(USER), ID]


def test_a_home_that_has_fallen_silent_stops_nothing(silent_home):
    with Tacho({"targets": []}, prefix=silent_home) as tacho:
        assert tacho.http("/-/ready")[0] == 200


@pytest.fixture
def rootless():
    """The cgroup of a container that a user has made."""
    with Cgroup("place") as place:
        made = place
        for name in (f"user-{USER}.slice", f"user@{USER}.service", "user.slice", f"libpod-{ID}.scope"):
            made = Cgroup(name, made)
        yield made


def test_a_container_of_another_user_has_its_name_beside_a_silent_home(rootless, silent_home):
    with ExactServer(rootless.prefix), Tacho(prefix=silent_home) as tacho:
        tacho.process.wait_for_line("listening on")
        named = tacho.scrape().all("tacho_target_info", container="named")
        assert [labels["cgroup"] for labels, _ in named] == [rootless.path]
