"""What only computes goes on behind what mostly waits: tests with the label `lane`, at the lowest priority.

    lane.py run FOLDER BUILD LABELS [SCRIPT…]   the SCRIPTs, one after the other; then the tests of BUILD's lane with one of LABELS
    lane.py test NAME SECONDS COMMAND…          such a test: a process of it that has had a CPU for SECONDS is ended
    lane.py after NAME SECONDS COMMAND…         a test of what the lane builds, that waits for answers within a time: label `after`
    lane.py quiet COMMAND…                      a test that compares times: the lane stands still meanwhile
    lane.py end FOLDER                          ends the lane, also where it stands still

tests/run has a lane, whose FOLDER is TACHO_LANE. There a test waits until the lane has ended, and says what the lane has found. What
comes after the lane mostly waits: the first of such tests runs all of them at once, and the others say what was found. One that is
tried again runs its COMMAND. Elsewhere, as when ctest is called by hand, all of them just run their COMMAND.

The lane may stand still for minutes, or have next to no CPU: how long a test of it takes says nothing, how much CPU time it takes does. What
hangs without using any for PATIENCE seconds, while somebody waits for it and does nothing else, is ended, with all of the lane.

FOLDER/session has the lane's process, which holds FOLDER/lock, inherited from who began it. The kernel gives it back when that is gone: nobody
waits for a lane that has died.
"""

import concurrent.futures
import fcntl
import json
import os
import pathlib
import resource
import signal
import subprocess
import sys
import time

# Below the TIMEOUT of its tests, so that the first one says what the lane did (tests/CMakeLists.txt).
PATIENCE = float(os.environ.get("TACHO_LANE_PATIENCE", "300"))
# Seconds from SIGTERM to SIGKILL.
GRACE = 5.0
# Of CPU time: what is starved uses some.
LEAST_PROGRESS = PATIENCE / 3000


def yield_to_all_else() -> None:
    """A session of its own, so that its processes can be ended together. Where the scheduler groups by sessions (autogroup),
    `nice` counts within one only; the group has a nice value, too (sched(7))."""
    os.setsid()
    os.nice(19)
    try:
        pathlib.Path("/proc/self/autogroup").write_text("19")
    except OSError as error:
        print(f"lane: the session keeps its priority: {error}")


def jobs(build: str, label: str, labels: str) -> list[tuple[str, list[str]]]:
    """Name and command of each test with the label and one of the labels."""
    told = subprocess.run(["ctest", "--test-dir", build, "-L", f"^{label}$", "-L", labels, "--show-only=json-v1"], check=True, stdout=subprocess.PIPE)
    return [(test["name"], test["command"]) for test in json.loads(told.stdout)["tests"]]


def run_all(folder: pathlib.Path, tests: list[tuple[str, list[str]]], at_once: int) -> None:
    """Leaves NAME.log and NAME.status of each. They have no lane: each runs its command."""
    own = {name: value for name, value in os.environ.items() if name != "TACHO_LANE"}

    def run_one(name: str, command: list[str]) -> None:
        with (folder / f"{name}.log").open("wb") as log:
            status = subprocess.run(command, env=own, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT).returncode
        (folder / f"{name}.status").write_text(str(status))

    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for job in [pool.submit(run_one, *test) for test in tests]:
            job.result()


def processes(folder: pathlib.Path) -> list[tuple[int, list[str]]]:
    """Those of the lane that have not ended, and what proc(5) says behind their names: state, parent, group, session …"""
    session = (folder / "session").read_text().strip()
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields[3] == session and fields[0] != "Z":
            found.append((int(process.name), fields))
    return found


def tell(folder: pathlib.Path, what: signal.Signals) -> int:
    """@return how many processes of the lane have got the signal"""
    told = 0
    for process, fields in processes(folder):
        if what == signal.SIGSTOP and fields[0] == "T":
            continue
        try:
            os.kill(process, what)
            told += 1
        except ProcessLookupError:
            pass
    return told


def cpu_seconds(folder: pathlib.Path) -> float:
    """What its processes have used, with their children that have ended."""
    return sum(int(ticks) for _, fields in processes(folder) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def wait_for_lane(folder: pathlib.Path) -> None:
    # A quiet test that was killed has not let it go on.
    tell(folder, signal.SIGCONT)
    used = cpu_seconds(folder)

    def look(*_) -> None:
        nonlocal used
        before, used = used, cpu_seconds(folder)
        if abs(used - before) < LEAST_PROGRESS:
            signal.setitimer(signal.ITIMER_REAL, 0)
            end(folder)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE, PATIENCE)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
    signal.setitimer(signal.ITIMER_REAL, 0)


def quiet(folder: pathlib.Path, command: list[str]) -> int:
    # One that was being forked is seen in the next round.
    while tell(folder, signal.SIGSTOP):
        pass
    try:
        return subprocess.run(command).returncode
    finally:
        tell(folder, signal.SIGCONT)


def end(folder: pathlib.Path) -> int:
    """Each of its processes is told, whatever group it is in (ninja's have their own); who stands still hears nothing before it goes on."""
    tell(folder, signal.SIGTERM)
    tell(folder, signal.SIGCONT)
    deadline = time.monotonic() + GRACE
    while processes(folder):
        if time.monotonic() > deadline:
            tell(folder, signal.SIGKILL)
        time.sleep(0.05)
    return 0


def run(folder: pathlib.Path, build: str, labels: str, scripts: list[str]) -> int:
    yield_to_all_else()
    # A test asks elsewhere, in its own directory.
    (folder / "asked").write_text(json.dumps([str(pathlib.Path(build).resolve()), labels]))
    for script in scripts:
        print(script, flush=True)
        own = {name: value for name, value in os.environ.items() if name != "TACHO_LANE"}
        subprocess.run(["bash", "-o", "pipefail", "-ec", script], check=True, env=own)
    run_all(folder, jobs(build, "lane", labels), os.cpu_count() or 1)
    return 0


def within(seconds: int, command: list[str]) -> int:
    """Each process of the command has SECONDS of CPU time (getrlimit(2), RLIMIT_CPU)."""
    # Who takes no notice of the first is killed by the second.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    status = subprocess.run(command).returncode
    if status == -signal.SIGXCPU:
        print(f"lane: {command[0]} was ended after {seconds} s of CPU time")
    return status


def found(folder: pathlib.Path, name: str) -> int:
    sys.stdout.buffer.write((folder / f"{name}.log").read_bytes())
    return int((folder / f"{name}.status").read_text())


def result(folder: pathlib.Path, name: str) -> int:
    wait_for_lane(folder)
    if not (folder / f"{name}.status").exists():
        last = (folder / "log").read_text(errors="replace").splitlines()[-60:]
        print(f"the lane ended before {name}; the last it said:", *last, sep="\n")
        return 1
    return found(folder, name)


def after(folder: pathlib.Path, name: str, seconds: int, command: list[str]) -> int:
    wait_for_lane(folder)
    begun = folder / "after"
    if not begun.exists():
        begun.touch()
        build, labels = json.loads((folder / "asked").read_text())
        run_all(folder, jobs(build, "after", labels), 2 * (os.cpu_count() or 1))
    if not (folder / f"{name}.status").exists():
        return within(seconds, command)
    status = found(folder, name)
    (folder / f"{name}.status").unlink()
    return status


def main(arguments: list[str]) -> int:
    folder = pathlib.Path(os.environ["TACHO_LANE"]) if "TACHO_LANE" in os.environ else None
    match arguments:
        case ["run", its_folder, build, labels, *scripts]:
            return run(pathlib.Path(its_folder), build, labels, scripts)
        case ["test", name, seconds, *command] if command:
            return result(folder, name) if folder else within(int(seconds), command)
        case ["after", name, seconds, *command] if command:
            return after(folder, name, int(seconds), command) if folder else within(int(seconds), command)
        case ["end", its_folder]:
            return end(pathlib.Path(its_folder))
        case ["quiet", *command] if command:
            return quiet(folder, command) if folder else subprocess.run(command).returncode
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    # What a signal has ended is negative.
    sys.exit(main(sys.argv[1:]) & 0xFF)
