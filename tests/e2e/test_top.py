"""`tacho top` in a terminal: sorting, filtering, resizing, a server that goes and comes; --once and --json."""

import json
import re
import subprocess

import pytest

from support import paths
from support.cgroup import Cgroup
from support.clients import ExactLoad
from support.servers import ExactServer
from support.tacho import Tacho, target
from support.terminal import Terminal
from support.waiting import wait_until

RATE = 1000


def top(*arguments, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [paths.require(paths.TACHO), "top", *map(str, arguments)], capture_output=True, text=True, timeout=30, **options
    )


def terminal(tacho: Tacho, *flags, **options) -> Terminal:
    return Terminal([paths.require(paths.TACHO), "top", "--url", f"http://{tacho.address}", *flags], **options)


@pytest.fixture
def watched(cgroups):
    """A tacho with a loaded and three idle targets."""
    parent = cgroups("top")
    groups = {name: Cgroup(name, parent) for name in ("busy", "calm", "quiet", "silent")}
    with ExactServer(groups["busy"].prefix) as server, ExactLoad(server.address, connections=4, rate=RATE):
        config = {"targets": [target(name, group.path, labels={"team": f"of-{name}"}) for name, group in groups.items()]}
        with Tacho(config) as tacho:
            wait_until(lambda: tacho.requests("busy") > 100, 5, "requests are counted")
            yield tacho


def rows(shown: Terminal) -> list[str]:
    """First words of the table's rows."""
    table = shown.lines[3:]
    return [line.split()[0] for line in table[: len(table) - 1] if line.strip()]


def test_it_shows_the_busiest_first_and_goes_on(watched):
    with terminal(watched) as shown:
        shown.wait_for("silent team=")
        assert rows(shown) == ["busy", "calm", "quiet", "silent"]
        header = shown.lines[2]
        assert "REQ/s▾" in header and "p99" in header and "QUEUED" in header
        wait_until(lambda: re.search(r"^busy team=of-busy +(9|1[01])\d\d", shown.text, re.M), 20, "the rate of the load")
        wait_until(lambda: re.search("[▂▃▄▅▆▇█]{4}", shown.text), 20, "a trend")
        shown.press("q")
        shown.wait_for("ended with 0")


def test_keys_sort_filter_select_and_pause(watched):
    with terminal(watched) as shown:
        shown.wait_for("silent team=")
        shown.press("n")
        shown.wait_for("TARGET▴")
        wait_until(lambda: rows(shown) == ["busy", "calm", "quiet", "silent"], 5, "in the order of the names")
        shown.press("n")
        shown.wait_for("TARGET▾")
        wait_until(lambda: rows(shown) == ["silent", "quiet", "calm", "busy"], 5, "in the reverse order")
        for key, title in (("5", "p50▾"), ("9", "p99▾"), ("w", "QUEUED▾"), ("i", "IDLE▴"), ("c", "CONDITIONS▾"), ("r", "REQ/s▾")):
            shown.press(key)
            shown.wait_for(title)
        shown.press("R")
        shown.wait_for("REQ/s▴")
        shown.press("/", "i", "e", "t", "Enter")
        wait_until(lambda: rows(shown) == ["quiet"], 5, "only what matches")
        assert "1 of 4 targets" in shown.lines[0] and "filter: iet" in shown.lines[1]
        shown.press("Escape")
        wait_until(lambda: len(rows(shown)) == 4, 5, "all again")
        shown.press("Space")
        shown.wait_for("paused")
        shown.press("Space", "Down", "Down", "End", "Up", "Home", "q")
        shown.wait_for("ended with 0")


def test_it_follows_the_size_of_the_window(watched):
    # Not that of another window, out of which somebody has exported it.
    elsewhere = {"COLUMNS": "240", "LINES": "5"}
    with terminal(watched, width=160, height=30, env=elsewhere) as shown:
        shown.wait_for("CALLS TO")
        shown.resize(50, 6)
        wait_until(lambda: "CALLS TO" not in shown.text and "p99" in shown.text, 5, "fewer columns")
        wait_until(lambda: len(rows(shown)) == 2, 5, "as many rows as have room")
        assert all(len(line) <= 50 for line in shown.lines)
        shown.press("End")
        wait_until(lambda: "silent" in shown.text, 5, "the last row is scrolled to")
        shown.resize(3, 2)
        shown.resize(160, 30)
        wait_until(lambda: "CALLS TO" in shown.text and len(rows(shown)) == 4, 5, "everything again")
        shown.press("q")
        shown.wait_for("ended with 0")


def test_a_restart_of_tacho_is_survived(cgroups):
    config = {"targets": [target("restarted", cgroups("restarted").path)]}
    with Tacho(config) as tacho:
        port = tacho.port
        shown = terminal(tacho)
        shown.wait_for("restarted ")
    with shown:
        shown.wait_for("is tacho running there?")
        assert "restarted" in rows(shown)
        with Tacho(config, port=port):
            wait_until(lambda: "is tacho running" not in shown.text, 10, "it is there again")
            shown.press("C-c")
            wait_until(lambda: "ended with" in shown.text, 5, "Control-C ends it")


def test_a_terminal_without_utf8_gets_ascii(watched):
    with terminal(watched, env={"LC_ALL": "C"}, term="vt100") as shown:
        shown.wait_for("REQ/sv")
        wait_until(lambda: re.search(r"\d us|\d ms", shown.text), 20, "a duration")
        assert shown.text.isascii()
        shown.press("q")
        shown.wait_for("ended with 0")


def test_an_unknown_terminal_is_a_clear_error(watched):
    with terminal(watched, term="no-such-terminal") as shown:
        shown.wait_for("ended with 1")
        assert "set TERM" in shown.text


def test_hostile_names_do_not_move_the_cursor(cgroups):
    parent = cgroups("hostile")
    for name in ("\x1b[2Jcleared", "two\rreturns", "\u202edesrever"):
        (parent.directory / name).mkdir()
    with Tacho({"targets": [target("h", f"{parent.path}/*")]}) as tacho:
        once = top("--once", "--url", tacho.address)
        assert once.returncode == 0 and "\\x1b[2Jcleared" in once.stdout
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f]", once.stdout)
        with terminal(tacho, width=200) as shown:
            shown.wait_for("\\x1b[2Jcleared")
            assert shown.lines[0].startswith("tacho")
    for child in parent.directory.iterdir():
        if child.is_dir():
            child.rmdir()


def test_once_prints_the_table_and_json_the_data(watched):
    wait_until(lambda: json.loads(top("--json", "--url", watched.address).stdout)["rate"] > RATE / 2, 20, "a rate")
    data = json.loads(top("--json", "--url", f"http://{watched.address}/").stdout)
    assert data["targets"] == 4 and data["rows"][0]["target"] == "busy"
    assert data["rate"] == pytest.approx(data["rows"][0]["rate"])
    once = top("--once", "--url", watched.address, "--sort", "name", "--filter", "of-")
    lines = once.stdout.splitlines()
    assert once.returncode == 0 and once.stderr == ""
    assert [line.split()[0] for line in lines] == ["TARGET▴", "busy", "calm", "quiet", "silent"]


def test_errors_name_the_remedy(watched):
    for arguments, status, words in (
        (["--url", "http://127.0.0.1:1", "--once"], 1, "is tacho running there? --url"),
        (["--url", "gopher://x", "--once"], 2, "it looks like http://HOST:9435"),
        (["--url", watched.address, "--sort", "size", "--once"], 2, "name, rate, p50"),
        (["--url", watched.address + "/nowhere", "--once"], 1, "nothing of tacho is served there"),
        (["--url", "https://" + watched.address, "--once"], 1, "https://"),
        (["--url", watched.address], 1, "--once"),
        (["--url", watched.address, "--password-file", "/no/such/file", "--once"], 1, "--password-file"),
        (["--url", "http://no-such-host.invalid", "--once"], 1, "not known"),
    ):
        refused = top(*arguments)
        assert refused.returncode == status, (arguments, refused.stderr)
        assert words in refused.stderr and refused.stdout == "", (arguments, refused.stderr)
