"""What hangs is told: by /-/healthy, /-/ready and the log; and SIGTERM ends tacho all the same."""

import os
import signal
import threading
import time

import pytest

from support import attack, ending, paths, stopper
from support.tacho import Tacho
from support.waiting import wait_until


def statuses(tacho) -> tuple[int, int]:
    return tacho.http("/-/healthy")[0], tacho.http("/-/ready")[0]


@pytest.mark.parametrize("what", ["the main loop", "GET /metrics"])
def test_what_is_stuck_for_ten_seconds_is_told(what):
    with Tacho() as tacho:
        assert statuses(tacho) == (200, 200)
        name = "tacho" if what == "the main loop" else "tacho-page"
        with stopper.stopped(stopper.thread_named(tacho.pid, name)):
            begin = time.monotonic()
            if what == "GET /metrics":
                threading.Thread(target=attack_quietly, args=(tacho.port,), daemon=True).start()
            wait_until(lambda: tacho.http("/-/healthy")[0] != 200, 20, "it tells that it is stuck")
            assert time.monotonic() - begin >= 9
            assert statuses(tacho) == (503, 503)
            reason = tacho.http("/-/ready")[2].decode()
            assert what in reason and "is stuck for 1" in reason, reason
            tacho.process.wait_for_line(f"ERROR {what}.* is stuck for 1")
        wait_until(lambda: statuses(tacho) == (200, 200), 5, "it is well again")
        tacho.process.wait_for_line(f"{what}.* goes on")


def test_a_scrape_that_takes_longer_than_its_interval_is_told_once():
    with Tacho() as tacho:
        for _ in range(5):
            assert attack.scrape(tacho.port)[0] == 200
        assert "a scrape took" not in tacho.process.output, "nobody waited"
        for _ in range(2):
            with stopper.stopped(stopper.thread_named(tacho.pid, "tacho-page")):
                asking = threading.Thread(target=attack_quietly, args=(tacho.port,), daemon=True)
                asking.start()
                time.sleep(1.3)  # longer than any interval of these scrapes, which is taken for a second
            asking.join(10)
        line = tacho.process.wait_for_line(r"WARN a scrape took (\S+) s, and (\S+).* comes every 1 s: .*scrape_interval")
        assert float(line.group(1)) >= 1.2 and line.group(2).startswith("127.0.0.1")
        assert tacho.process.output.count("a scrape took") == 1, "and not again for minutes"


@pytest.mark.parametrize("name", ["tacho", "tacho-page", "tacho-gate"])
def test_it_ends_within_a_second_whatever_is_stuck(name):
    with Tacho() as tacho:
        thread = stopper.thread_named(tacho.pid, name)
        with stopper.stopped(thread):
            if name == "tacho-page":
                threading.Thread(target=attack_quietly, args=(tacho.port,), daemon=True).start()
                wait_until(lambda: tacho.http("/-/healthy")[0] == 200, 5, "it serves")
            took = ending.seconds_to_end(tacho)
        tacho.process.wait()
    assert took < ending.LIMIT


def test_it_ends_within_a_second_though_nothing_can_be_logged():
    """The main thread stands still with the log's lock, which the one that ends tacho wants as well."""
    with Tacho("targets: []\n") as tacho:
        thread = stopper.thread_named(tacho.pid, "tacho")
        with stopper.stopped(thread, in_log_when=lambda: tacho.process.signal(signal.SIGHUP)):
            took = ending.seconds_to_end(tacho)
        tacho.process.wait()
    assert took < ending.LIMIT


def attack_quietly(port: int) -> None:
    try:
        attack.scrape(port)
    except OSError:
        pass


def test_a_log_that_nobody_reads_stops_nothing(tmp_path):
    config = tmp_path / "tacho.yaml"
    config.write_text("targets: []\n")
    read, write = os.pipe()
    port_file = tmp_path / "socket"
    with open(os.devnull) as nothing:
        pid = os.posix_spawn(
            paths.require(paths.TACHO),
            ["tacho", f"--config.file={config}", f"--web.listen-address=unix:{port_file}", "--web.listen-address=127.0.0.1:0"],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, write, 2), (os.POSIX_SPAWN_DUP2, nothing.fileno(), 0), (os.POSIX_SPAWN_CLOSE, read)],
        )
    os.close(write)
    try:
        lines = b""
        while b"listening on 127.0.0.1:" not in lines:
            lines += os.read(read, 65536)
        port = int(lines.partition(b"listening on 127.0.0.1:")[2].split()[0])
        config.write_text("broken: " + "x" * 4000 + "\n")
        fill = os.open(f"/proc/{pid}/fd/2", os.O_WRONLY | os.O_NONBLOCK)
        try:
            while True:
                os.write(fill, b"x" * 4096)
        except BlockingIOError:
            pass
        finally:
            os.close(fill)
        os.kill(pid, signal.SIGHUP)
        wait_until(lambda: dropped(port) > 0, 10, "a line is dropped and counted")
        assert attack.scrape(port, path="/-/healthy")[0] == 200
        os.set_blocking(read, False)
        drain(read)
        os.kill(pid, signal.SIGHUP)
        text = b""

        def told():
            nonlocal text
            text += drain(read)
            return b"lines of the log were dropped" in text

        wait_until(told, 10, "the log says that lines are missing")
    finally:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
        os.close(read)


def drain(descriptor: int) -> bytes:
    text = b""
    try:
        while part := os.read(descriptor, 65536):
            text += part
    except BlockingIOError:
        pass
    return text


def dropped(port: int) -> float:
    for line in attack.scrape(port)[1].decode().splitlines():
        if line.startswith("tacho_log_dropped_lines_total "):
            return float(line.split()[1])
    raise ValueError("no tacho_log_dropped_lines_total")
