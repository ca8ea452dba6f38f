"""Who serves the network can do nothing else, and may die: the collector counts on, and starts it anew."""

import contextlib
import os
import pathlib
import re
import resource
import signal
import ssl
import subprocess
import tempfile
import threading
import time

import pytest

from support import attack, net, paths
from support.cgroup import Cgroup
from support.clients import ExactBatches, exact
from support.certificate import self_signed
from support.exposition import Samples
from support.servers import ExactServer
from support.tacho import Tacho, target
from support.waiting import wait_until

CAP_PERFMON, CAP_BPF = 38, 39
FIRST_OWN_USER = 1_900_000_000
RIGHTS_OF_THE_UNIT = ["setpriv", "--bounding-set=-all,+bpf,+perfmon", "--inh-caps=-all", "--no-new-privs"]
PREFIXES = {"root": [], "the unit": RIGHTS_OF_THE_UNIT}

NOTHING = {"targets": [target("nothing", "/tacho-test-nothing")]}  # other servers of this machine are no matter


def status_of(pid: int) -> dict[str, str]:
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def is_alive(pid: int) -> bool:
    """Who has ended may stay in the list until somebody asks how."""
    try:
        return status_of(pid)["State"][0] not in "ZX"
    except (OSError, KeyError):
        return False


def threads_of(pid: int) -> list[dict[str, str]]:
    return [status_of(int(task)) for task in os.listdir(f"/proc/{pid}/task")]


def capabilities(status: dict[str, str]) -> int:
    return int(status["CapPrm"], 16) | int(status["CapEff"], 16) | int(status["CapInh"], 16) | int(status["CapAmb"], 16)


@pytest.mark.parametrize("rights", PREFIXES)
def test_what_each_process_holds(rights):
    with Tacho(NOTHING, prefix=PREFIXES[rights]) as tacho:
        shown = {each["process"]: each for each in tacho.targets()["processes"]}
        assert shown.keys() == {"collector", "web"}
        web, collector = shown["web"]["pid"], shown["collector"]["pid"]
        assert collector == tacho.pid and web != tacho.pid
        assert shown["web"]["capabilities"] == []
        assert "bpf" in shown["collector"]["capabilities"]
        assert set(shown["collector"]["capabilities"]) <= {"bpf", "dac_read_search"}
        for pid in tacho.processes():
            for status in threads_of(pid):
                assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status["Name"]
                held = capabilities(status)
                allowed = {1 << CAP_BPF, 1 << CAP_BPF | 1 << 2} if pid == tacho.pid else {0}
                assert held in allowed | {0}, f"{status['Name']}: {held:#x}"
        if rights == "root":
            assert shown["web"]["not_permitted"] == []
            own = str(FIRST_OWN_USER + tacho.pid)
            assert set(status_of(web)["Uid"].split()) == {own} == set(status_of(web)["Gid"].split())
            assert status_of(web)["Groups"] == ""
            assert os.listdir(f"/proc/{web}/root") == []
        samples = tacho.scrape()
        held = {(labels["process"], labels["capability"]): value
                for labels, value in samples.all("tacho_process_capabilities")}  # fmt: skip
        assert held[("collector", "bpf")] == 1 and held[("collector", "perfmon")] == 0
        assert held[("web", "bpf")] == held[("web", "perfmon")] == 0
        assert {key: value for key, value in held.items() if key[0] == "web" and value} == {}


def test_log_says_for_how_long_all_memory_could_be_read():
    begin = time.monotonic()
    with Tacho(NOTHING) as tacho:
        took = 1000 * (time.monotonic() - begin)
        said = r"collector \(process \d+, uid 0\) holds .*\bbpf\b.*, (\d+) ms after the start$"
        (held,) = re.findall(said, tacho.process.output, re.MULTILINE)
        print(f"{held} ms of a start that took {took:.0f} ms")
        # The kernel's verifier reads tens of thousands of instructions meanwhile.
        assert 10 < int(held) <= took
        assert not capabilities(status_of(tacho.pid)) & 1 << CAP_PERFMON


@pytest.mark.parametrize("rights", PREFIXES)
def test_new_targets_are_counted_without_the_rights_that_were_given_up(cgroups, agree, rights):
    parent = cgroups("late")
    entries = [target(f"late{number}", f"{parent.path}/late{number}") for number in range(6)]
    with Tacho({"targets": entries}, prefix=PREFIXES[rights]) as tacho:
        for number in range(6):  # four have their maps beforehand
            with Cgroup(f"late{number}", parent) as group, ExactServer(group.prefix) as server:
                with tacho.watch(f"late{number}") as change:
                    counted = exact(server.address, 211, connections=2)
                agree(f"target {number} after the start", counted, change)


def test_a_web_process_that_hangs_is_replaced():
    with Tacho(NOTHING) as tacho:
        web = tacho.web_pid
        os.kill(web, signal.SIGSTOP)
        tacho.process.wait_for_line("web process hangs for 15 s; another one takes its place", timeout=60)
        # Who has just been started may answer before it is counted.
        wait_until(lambda: tacho.next_scrape().get("tacho_web_process_starts_total") == 2, 5, "it is counted")
        assert tacho.web_pid != web


def test_tacho_ends_and_says_so_when_nothing_can_be_served_any_more():
    with Tacho(NOTHING) as tacho:
        for pid in tacho.processes()[1:]:
            if status_of(pid)["Name"] == "tacho-starter":
                os.kill(pid, signal.SIGSTOP)
        for pid in tacho.processes()[1:]:
            os.kill(pid, signal.SIGKILL)
        assert tacho.process.wait(timeout=15) == 1
        assert "nothing can be served any more" in tacho.process.output


def test_who_crashes_in_a_row_is_started_again_after_longer_and_longer_pauses():
    with Tacho(NOTHING, program=paths.TACHO_WITH_HOLE) as tacho:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                tacho.http("/hole/crash", timeout=10)
        starts = tacho.next_scrape().get("tacho_web_process_starts_total")
        # After 0.3, 0.6, 1.2 and 2.4 s; who lived for a second is started again at once.
        print(f"{starts:.0f} starts")
        assert 3 <= starts <= 9, "a pause of 0.3 s each time would make it twelve"
        told = tacho.process.output.count("the web process was ended by signal 11")
        assert 1 <= told <= 2, "a line in ten seconds"


@pytest.mark.parametrize("victim", ["tacho-web", "tacho-starter"])
def test_the_next_scrape_comes_soon_after_a_kill(cgroups, agree, victim):
    group = cgroups("killed")
    with ExactServer(group.prefix) as server, ExactBatches(server.address, connections=2) as batches:
        with Tacho({"targets": [target("killed", group.path)]}) as tacho:
            batches.send(211)
            for kills in range(1, 4):
                time.sleep(1.1)  # who dies sooner than a second after his start has to wait a little
                accepted = tacho.settled("killed").get("tacho_web_connections_accepted_total")
                web = tacho.web_pid
                parent = int(status_of(web)["PPid"])
                os.kill(web if victim == "tacho-web" else parent, signal.SIGKILL)
                asked = time.monotonic()
                samples = tacho.next_scrape()
                took = time.monotonic() - asked
                print(f"the scrape after the kill took {took:.2f} s")
                assert took < 10
                assert samples.get("tacho_requests_total", target="killed") == 211 * kills
                assert samples.get("tacho_web_connections_accepted_total") > accepted
                batches.send(211)
            assert tacho.web_pid != web


def test_a_spare_starter_that_is_killed_is_replaced():
    def starters(tacho):
        return {pid for pid in tacho.processes()[1:] if status_of(pid)["Name"] == "tacho-starter"}

    with Tacho(NOTHING) as tacho:
        active = int(status_of(tacho.web_pid)["PPid"])
        (spare,) = starters(tacho) - {active}
        os.kill(spare, signal.SIGKILL)
        wait_until(lambda: len(starters(tacho) - {spare}) == 2, 10, "there is another spare")
        os.kill(active, signal.SIGKILL)
        assert tacho.next_scrape().get("tacho_web_process_starts_total") == 2


def test_the_web_process_ends_with_the_collector():
    with Tacho(NOTHING) as tacho:
        others = tacho.processes()[1:]
        assert len(others) == 3
        tacho.kill()
        wait_until(lambda: not any(map(is_alive, others)), 10, "nothing is left")
    with Tacho(NOTHING) as tacho:
        others = tacho.processes()[1:]
        tacho.process.signal(signal.SIGTERM)
        assert tacho.process.wait(timeout=10) == 0
        wait_until(lambda: not any(map(is_alive, others)), 10, "nothing is left")


def test_who_serves_says_that_the_collector_is_stuck():
    with Tacho(NOTHING) as tacho:
        assert tacho.http("/-/healthy")[0] == 200
        os.kill(tacho.pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            wait_until(lambda: tacho.http("/-/healthy", timeout=3)[0] == 503, 30, "it is told")
            assert time.monotonic() - began > 8
            status, _, body = tacho.http("/-/ready", timeout=3)
            assert status == 503 and b"is stuck for 1" in body
        finally:
            os.kill(tacho.pid, signal.SIGCONT)
        wait_until(lambda: tacho.http("/-/healthy")[0] == 200, 15, "it is well again")


def test_another_certificate_is_served_without_a_restart(tmp_path):
    certificates = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        certificates.append(self_signed(tmp_path / name))
    served = tmp_path / "served.pem", tmp_path / "served.key"
    place(certificates[0], served)
    config = tmp_path / "web.yml"
    config.write_text(f"tls_server_config:\n  cert_file: {served[0]}\n  key_file: {served[1]}\n")
    with Tacho(NOTHING, flags=[f"--web.config.file={config}"]) as tacho:
        first = shown_certificate(tacho.port)
        place(certificates[1], served)
        wait_until(lambda: shown_certificate(tacho.port) != first, 10, "the other certificate is shown")
        second = shown_certificate(tacho.port)
        served[1].write_text("no key")
        tacho.process.wait_for_line("web configuration not reloaded, the one before stays")
        assert shown_certificate(tacho.port) == second
        served[1].unlink()
        os.kill(int(web_of(tacho)), signal.SIGKILL)
        wait_until(lambda: shown_certificate(tacho.port) == second, 15, "the next web process has the last good one")


def test_answers_that_find_no_memory_are_errors_and_end_nothing(cgroups, agree, tmp_path):
    """Neither a page nor another web configuration can be passed on; what is counted meanwhile is counted."""
    web = tmp_path / "web.yml"

    def configure(policy: str) -> None:
        web.with_suffix(".new").write_text(f"http_server_config:\n  headers:\n    X-Frame-Options: {policy}\n")
        web.with_suffix(".new").rename(web)

    configure("deny")
    group = cgroups("memory")
    config = {"targets": [target("memory", group.path)]}
    with ExactServer(group.prefix) as server, Tacho(config, flags=[f"--web.config.file={web}"]) as tacho:
        with tacho.watch("memory") as change:
            # No file may be longer, and what is passed on is one.
            before = resource.prlimit(tacho.pid, resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
            assert tacho.http("/metrics")[0] == 500
            configure("sameorigin")
            tacho.process.wait_for_line("the web configuration cannot be passed on: an answer finds no memory")
            counted = exact(server.address, 1003, connections=3)
            resource.prlimit(tacho.pid, resource.RLIMIT_FSIZE, before)
        agree("answers find no memory meanwhile", counted, change)
        wait_until(lambda: tacho.http("/metrics")[1]["X-Frame-Options"] == "sameorigin", 5, "the other web configuration")


def test_a_log_that_nobody_reads_any_more_ends_nothing():
    """As with `tacho 2>&1 | head`."""
    with tempfile.NamedTemporaryFile("w") as config:
        config.write("targets: []")
        config.flush()
        reader, writer = os.pipe()
        arguments = [str(paths.require(paths.TACHO)), "--web.listen-address=127.0.0.1:0", f"--config.file={config.name}"]
        with subprocess.Popen(arguments, stderr=writer, stdout=writer) as tacho:
            os.close(writer)
            with open(reader) as log:
                address = next(line.split()[-1] for line in log if "listening on" in line)
            pathlib.Path(config.name).write_text("target: []")
            tacho.send_signal(signal.SIGHUP)

            def refused() -> bool:
                samples = Samples.parse(net.exchange(address, "/metrics")[2].decode())
                return samples.get("tacho_config_last_reload_successful") == 0

            try:
                wait_until(refused, 5, "what is wrong with the configuration has been said to nobody")
            finally:
                tacho.terminate()
            assert tacho.wait(10) == 0


def place(pair, served) -> None:
    for source, goal in zip(pair, served):
        new = goal.with_suffix(".new")
        new.write_bytes(pathlib.Path(source).read_bytes())
        new.rename(goal)


def shown_certificate(port: int) -> str:
    return ssl.get_server_certificate(("127.0.0.1", port), timeout=3)


def web_of(tacho) -> str:
    def found():
        return [pid for pid in tacho.processes() if status_of(pid)["Name"] == "tacho-web"]

    return str(wait_until(found, 10, "there is a web process")[0])


def test_a_row_of_kills_is_survived_by_who_reads_meanwhile():
    with Tacho(NOTHING) as tacho:
        stop = threading.Event()
        answered = []

        def read():
            while not stop.is_set():
                with contextlib.suppress(OSError):
                    answered.append(attack.scrape(tacho.port)[0])

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for _ in range(5):
                os.kill(int(web_of(tacho)), signal.SIGKILL)
                tacho.next_scrape()
            so_far = len(answered)
            wait_until(lambda: 200 in answered[so_far:], 20, "the reader is answered")
        finally:
            stop.set()
            reader.join()
        assert set(answered) <= {200, 0}, "a connection may be cut off, nothing else"
        wait_until(lambda: tacho.scrape().get("tacho_web_connections") == 1, 10, "none of theirs is counted any more")
