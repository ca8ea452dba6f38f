"""What goes on behind the tests of a run."""

import fcntl
import os
import pathlib
import select
import signal
import subprocess
import sys

import pytest

LANE = pathlib.Path(__file__).with_name("lane.py")
COMMAND = [sys.executable, "-B", str(LANE)]


class Lane:
    """One that does a script, and then a test that says something and fails."""

    def __init__(self, folder: pathlib.Path, script: str):
        self.folder = folder
        (folder / "CTestTestfile.cmake").write_text(
            'add_test(says "sh" "-c" "echo said; exit 3")\n'
            'set_tests_properties(says PROPERTIES LABELS "unit;lane" TIMEOUT "9" WORKING_DIRECTORY "/")\n'
            'add_test(other "sh" "-c" "exit 4")\n'
        )
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.set_inheritable(lock.fileno(), True)
            self.process = subprocess.Popen(
                [*COMMAND, "run", str(folder), ".", "^unit$", script],
                cwd=folder, close_fds=False, stdout=(folder / "log").open("w"), stderr=subprocess.STDOUT,
            )
        (folder / "session").write_text(str(self.process.pid))

    def call(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
        own = os.environ | {"TACHO_LANE": str(self.folder)} | environment
        return subprocess.run([*COMMAND, *arguments], env=own, capture_output=True, text=True, timeout=60)


def state(process: int) -> str:
    return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.fixture
def gate(tmp_path):
    """A script of the lane goes on when the test has opened it."""
    os.mkfifo(tmp_path / "gate")
    return tmp_path / "gate"


def test_a_result_is_what_the_test_said_and_returned(tmp_path):
    lane = Lane(tmp_path, "true")
    told = lane.call("test", "says", "9", "false")
    assert (told.stdout, told.returncode) == ("said\n", 3)
    assert lane.process.wait(60) == 0


def test_what_comes_after_the_lane_waits_for_it(tmp_path, gate):
    lane = Lane(tmp_path, f"cat {gate}; touch {tmp_path}/done")
    after = subprocess.Popen(
        [*COMMAND, "after", "late", "9", "ls", f"{tmp_path}/done"], env=os.environ | {"TACHO_LANE": str(tmp_path)}, stdout=subprocess.DEVNULL
    )
    gate.write_text("")
    assert (after.wait(60), lane.process.wait(60)) == (0, 0)


def test_what_comes_after_the_lane_runs_at_once_and_again_if_it_is_asked_for_again(tmp_path):
    lane = Lane(tmp_path, "true")
    there, back = tmp_path / "there", tmp_path / "back"
    os.mkfifo(there)
    os.mkfifo(back)
    # Each waits for the other.
    scripts = {"a": f"echo x >{there}; read y <{back}", "b": f"read y <{there}; echo x >{back}"}
    with (tmp_path / "CTestTestfile.cmake").open("a") as tests:
        for name, script in scripts.items():
            tests.write(f'add_test({name} "sh" "-c" "{script}; echo {name}; exit 7")\n')
            tests.write(f'set_tests_properties({name} PROPERTIES LABELS "unit;after" TIMEOUT "9" WORKING_DIRECTORY "/")\n')
    assert lane.process.wait(60) == 0
    for name in scripts:
        told = lane.call("after", name, "9", "false")
        assert (told.stdout, told.returncode) == (f"{name}\n", 7)
    assert lane.call("after", "a", "9", "sh", "-c", "exit 5").returncode == 5


def test_the_lane_stands_still_beside_a_quiet_test_and_goes_on(tmp_path, gate):
    lane = Lane(tmp_path, f"echo $$ >{tmp_path}/script; cat {gate}")
    try:
        while not (tmp_path / "script").exists() or not (tmp_path / "script").read_text():
            assert lane.process.poll() is None
        script = int((tmp_path / "script").read_text())
        stopped = lane.call("quiet", "cat", f"/proc/{script}/stat", f"/proc/{lane.process.pid}/stat")
        assert [line.rpartition(")")[2].split()[0] for line in stopped.stdout.splitlines()] == ["T", "T"]
        assert "T" not in state(script) + state(lane.process.pid)
    finally:
        gate.write_text("")
    assert lane.process.wait(60) == 0


def test_a_lane_that_stands_still_is_ended(tmp_path, gate):
    lane = Lane(tmp_path, f"echo $$ >{tmp_path}/script; cat {gate}")
    while not (tmp_path / "script").exists() or not (tmp_path / "script").read_text():
        assert lane.process.poll() is None
    script = int((tmp_path / "script").read_text())
    ended = os.pidfd_open(script)
    os.kill(script, signal.SIGSTOP)
    os.kill(lane.process.pid, signal.SIGSTOP)
    assert lane.call("end", str(tmp_path)).returncode == 0
    assert lane.process.wait(60) == -signal.SIGTERM
    assert select.select([ended], [], [], 60)[0], "its script goes on"
    os.close(ended)


def test_a_lane_that_died_fails_its_tests_and_says_why(tmp_path):
    lane = Lane(tmp_path, "echo no room left; exit 1")
    told = lane.call("test", "says", "9", "true")
    assert told.returncode == 1 and "no room left" in told.stdout, told
    assert lane.process.wait(60) != 0


def test_without_a_lane_a_test_runs_its_command():
    without = {name: value for name, value in os.environ.items() if name != "TACHO_LANE"}
    for how in (["test", "says", "9"], ["after", "name", "9"], ["quiet"]):
        assert subprocess.run([*COMMAND, *how, "sh", "-c", "exit 5"], env=without).returncode == 5


def test_a_test_is_ended_by_its_cpu_time_and_not_by_the_clock():
    without = {name: value for name, value in os.environ.items() if name != "TACHO_LANE"}
    busy = subprocess.run([*COMMAND, "test", "says", "1", "sh", "-c", "while :; do :; done"], env=without, capture_output=True, text=True)
    assert busy.returncode != 0 and "ended after 1 s of CPU time" in busy.stdout
    starved = subprocess.run([*COMMAND, "test", "says", "1", "sleep", "1.5"], env=without, capture_output=True, text=True)
    assert (starved.stdout, starved.returncode) == ("", 0)


@pytest.mark.parametrize("deaf", ["", "trap '' TERM; "])
def test_a_lane_that_hangs_is_ended_when_somebody_waits_for_it(tmp_path, gate, deaf):
    lane = Lane(tmp_path, f"{deaf}echo $$ >{tmp_path}/script; echo begun; cat {gate}; cat {gate}")
    told = lane.call("test", "says", "9", "true", TACHO_LANE_PATIENCE="1")
    assert told.returncode == 1 and "the lane ended before says" in told.stdout and "begun" in told.stdout, told
    assert lane.process.wait(60) == -signal.SIGTERM
    try:
        assert state(int((tmp_path / "script").read_text())) == "Z"
    except FileNotFoundError:
        pass


def test_a_lane_that_works_is_waited_for_whatever_the_time(tmp_path):
    lane = Lane(tmp_path, "end=$((SECONDS + 5)); while [ $SECONDS -lt $end ]; do :; done")
    told = lane.call("test", "says", "9", "false", TACHO_LANE_PATIENCE="2")
    assert (told.stdout, told.returncode) == ("said\n", 3)
    assert lane.process.wait(60) == 0
