"""Attacks that tacho has always withstood, while it watches hundreds of targets: it still does."""

import contextlib
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import time

import pytest

from support import attack, paths
from support.cgroup import Cgroup
from support.certificate import self_signed
from support.exposition import OPENMETRICS, Samples
from support.slow import SKIPPED, slow_but
from support.tacho import Tacho, target
from support.waiting import wait_until

TARGETS = 200 if SKIPPED else 1000
SECONDS = 2
ELSEWHERE = "127.99.99.99"
MEBIBYTE = 1 << 20


@pytest.fixture(scope="module")
def large():
    """A tacho whose page is megabytes long."""
    with contextlib.ExitStack() as stack:
        parent = stack.enter_context(Cgroup("withstood"))
        for number in range(TARGETS):
            stack.enter_context(Cgroup(f"w{number}", parent))
        config = {"targets": [target("w", f"{parent.path}/w*")], "limits": {"max_targets": TARGETS}}
        with Tacho(config, start_timeout=60) as tacho:
            wait_until(lambda: len(tacho.targets()["targets"]) == TARGETS, 30, "all are watched")
            yield tacho


def descriptors(tacho) -> list[int]:
    """How many each of its processes has."""
    return [len(os.listdir(f"/proc/{pid}/fd")) for pid in tacho.processes()]


def least_descriptors(tacho) -> list[int]:
    """The same without what a look at the machine, a page or a connection has for a moment."""
    readings = []
    for _ in range(20):
        readings.append(descriptors(tacho))
        time.sleep(0.05)
    return [min(counts) for counts in zip(*readings, strict=True)]


def check_scrapes(tacho, most: float, **options) -> None:
    times = attack.times_of_scrapes(tacho.port, SECONDS, source=ELSEWHERE, **options)
    print(f"{len(times)} scrapes, the slowest took {max(times):.2f} s, {most:.2f} s are allowed")
    assert max(times) <= most


@pytest.fixture(scope="module")
def most(large) -> float:
    """What a scrape may take; who makes it has been served before."""
    return attack.limit(large.port, source=ELSEWHERE)


def check_slow_readers(large, most: float, clients: int, request: bytes, mebibytes: int) -> None:
    """Scrapes, and memory, while so many clients ask and read nothing."""
    before = large.resident_bytes()
    with contextlib.ExitStack() as stack:
        for _ in range(clients):
            client = stack.enter_context(socket.socket())
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", large.port))
            client.sendall(request)
        check_scrapes(large, most)
        grown = large.resident_bytes() - before
    print(f"{grown / MEBIBYTE:.0f} MiB more")
    assert grown < mebibytes * MEBIBYTE


def test_slow_readers_of_large_pages(large, most):
    """40 MiB of pages are kept for who reads slowly, and one is being made."""
    check_slow_readers(large, most, 60, attack.WHOLE_GET, 96)


@pytest.mark.parametrize(("source", "sources"), [(ELSEWHERE, 200), ("127.0.0.1", 1)], ids=["many sources", "the reader's own source"])
def test_slow_readers_that_always_take_a_little(large, source, sources):
    """Of pages that are made one after the other, so that they fill the memory for pages, or their source's share of it."""
    most = attack.limit(large.port, source=source)

    def cut_off() -> float:
        return large.scrape().get("tacho_web_connections_lost_total", reason="slow_reader")

    before = cut_off()
    with attack.Drips(large.port, sources, 200, 50):
        wait_until(lambda: cut_off() > before, 20, "there is no room for more pages")
        times = attack.times_of_scrapes(large.port, SECONDS, source=source)
    print(f"{len(times)} scrapes, the slowest took {max(times):.2f} s, {most:.2f} s are allowed")
    assert max(times) <= most


def test_slow_readers_of_answers_that_are_made_for_each(large, most):
    """As many as there may be connections: each would keep one of hundreds of KiB. 16 MiB are kept, and one is being made."""
    check_slow_readers(large, most, 500, attack.WHOLE_ELSEWHERE, 48)


FLOODS = [("/metrics", 400), ("/metrics", 64), ("/", 64), ("/targets", 64)]


@pytest.mark.parametrize(("path", "clients"), slow_but([FLOODS[0], FLOODS[3]], FLOODS, "floods that are like others"))
def test_floods_of_whole_requests(large, most, path, clients):
    with attack.Flood(large.port, f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode(), clients) as flood:
        check_scrapes(large, most)
    print(f"{flood.answers} answers")
    assert flood.answers > 16


ENDLESS = [
    b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"a" * 1_000_000,
    b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 10_000,
    b"GET /" + b"a" * 500_000,
    attack.WHOLE_GET * 300,
]


def test_requests_that_are_too_long(large, most):
    with contextlib.ExitStack() as stack:
        for payload in ENDLESS:
            stack.enter_context(attack.Callers(large.port, payload, 1))
        check_scrapes(large, most)


def test_of_pipelined_requests_the_first_is_answered(large):
    with socket.create_connection(("127.0.0.1", large.port)) as client:
        client.sendall(attack.WHOLE_ELSEWHERE.replace(b"/targets", b"/-/healthy") * 300)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while part := client.recv(65536):
                answer += part
    assert answer.count(b"HTTP/1.1 200") == 1


def test_costly_questions(large, most):
    words = "+".join(f"{number:x}" for number in range(300))[:1000]
    ids = ",".join(row["id"] for row in json.loads(large.http("/api/v1/targets?limit=1000")[2])["rows"])[:15_000]
    for question in (f"targets?filter={words}", "targets?limit=10000&sort=p99", f"history?ids={ids}", f"why?ids={ids}", f"slow?ids={ids}"):
        began = time.monotonic()
        status, _, body = large.http(f"/api/v1/{question}")
        took = time.monotonic() - began
        print(f"{question[:40]}: {len(body)} bytes in {took:.3f} s")
        assert status == 200 and took < most


def test_connections_that_are_reset_leave_nothing(large, most):
    def reset():
        with socket.create_connection(("127.0.0.1", large.port)) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    before, memory = least_descriptors(large), large.resident_bytes()
    many = 4_000 if SKIPPED else 20_000
    with attack.Crowd(4, reset) as clients:
        check_scrapes(large, most)
        wait_until(lambda: clients.steps >= many, 60, f"{many} connections")
    wait_until(lambda: large.scrape().get("tacho_web_connections") == 1, 10, "all are forgotten")
    wait_until(lambda: descriptors(large) == before, 10, f"{before} descriptors, as before", interval=0.1)
    assert large.resident_bytes() - memory < 16 * MEBIBYTE


def test_a_thousand_clients_that_stay_after_their_answer(large, most):
    """As with keep-alive. They may hold what is theirs; of tacho's side nothing is left, though none of them has closed."""
    before = least_descriptors(large)
    request = attack.WHOLE_ELSEWHERE.replace(b"/targets", b"/-/healthy").replace(b"\r\n\r\n", b"\r\nConnection: keep-alive\r\n\r\n")
    with attack.Holders(large.port, request, 1000) as clients:
        wait_until(lambda: clients.steps >= 1000, 60, "a thousand are there")
        check_scrapes(large, most)
        clients.enough.set()
        # Less than the ten seconds after which one that takes nothing is cut off.
        wait_until(lambda: large.scrape().get("tacho_web_connections") == 1, 5, "all are forgotten")
        wait_until(lambda: descriptors(large) == before, 5, f"{before} descriptors, as before", interval=0.1)


def test_heads_that_come_byte_by_byte(large, most):
    """Each byte may wake who reads it, who has looked at the thousands before it already."""
    with attack.Spellers(large.port, 100) as one, attack.Spellers(large.port, 100) as other:
        wait_until(lambda: one.steps and other.steps, 10, "all have begun")
        check_scrapes(large, most)
        rounds = one.steps + other.steps
    print(f"{rounds * 100} bytes")
    assert rounds > 10 * SECONDS, "the attack was none"


def test_time_in_which_it_was_stopped(large, most):
    """With as many connections as there may be, all of which want something when it goes on."""
    pids = [large.pid, large.web_pid]
    with contextlib.ExitStack() as stack:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
            stack.callback(os.kill, pid, signal.SIGCONT)
        for _ in range(700):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(("127.0.0.1", large.port))
            with contextlib.suppress(OSError):
                client.send(attack.HALF_HEAD)
        # Who finds no room in the kernel's line knocks again after a second.
        reader = stack.enter_context(socket.create_connection(("127.0.0.1", large.port), timeout=0.9, source_address=(ELSEWHERE, 0)))
        reader.settimeout(30)
        reader.sendall(attack.WHOLE_GET)
        time.sleep(3 if SKIPPED else 15)
        for pid in reversed(pids):
            os.kill(pid, signal.SIGCONT)
        began = time.monotonic()
        assert reader.recv(12) == b"HTTP/1.1 200"
        assert time.monotonic() - began <= most
        check_scrapes(large, most)
    assert large.scrape().get("tacho_web_process_starts_total") == 1, "who was stopped did not hang"


def test_who_guesses_passwords_holds_up_nobody(tmp_path):
    web = tmp_path / "web.yml"
    web.write_text(f"basic_auth_users:\n  reader: {attack.HASH}\n")
    with Tacho({"targets": []}, flags=[f"--web.config.file={web}"]) as tacho:
        most = attack.limit(tacho.port, source=ELSEWHERE, headers=attack.RIGHT)
        with attack.Crowd(24, lambda: attack.scrape(tacho.port, headers=attack.WRONG)):
            check_scrapes(tacho, most, headers=attack.RIGHT)
        assert attack.scrape(tacho.port, headers=attack.WRONG)[0] == 401


def test_new_certificates_leave_nothing(tmp_path):
    (tmp_path / "next").mkdir()
    certificate, key = self_signed(tmp_path)
    web = tmp_path / "web.yml"
    web.write_text(f"tls_server_config:\n  cert_file: {certificate}\n  key_file: {key}\n")
    with Tacho({"targets": []}, flags=[f"--web.config.file={web}"]) as tacho:

        def rotate():
            for file in reversed(self_signed(tmp_path / "next")):
                os.replace(file, tmp_path / file.name)
            wanted = certificate.read_text().strip()
            wait_until(lambda: ssl.get_server_certificate(("127.0.0.1", tacho.port)).strip() == wanted, 10, "the other one is shown")

        def alone() -> bool:
            page = attack.scrape(tacho.port, tls=True)[1].decode()
            return Samples.parse(page).get("tacho_web_connections") == 1

        rotate()
        wait_until(alone, 10, "connections have ended")
        before, memory = least_descriptors(tacho), tacho.written_bytes()
        for _ in range(10 if SKIPPED else 300):
            rotate()
        wait_until(alone, 10, "connections have ended")
        wait_until(lambda: descriptors(tacho) == before, 10, f"{before} descriptors, as before", interval=0.1)
        assert tacho.written_bytes() - memory < 4 * MEBIBYTE


HOSTILE = [
    b"<script>alert(1)<|script>", b'"quotes"', b"back\\slash", b"\\n", b"carriage\rreturn", b"tab\tstop",
    b"\x1b[2J", b"\x1b]0;pwn\x07", b"\xc2\x9b2J", b"\x7f", b"\xe2\x80\xaedesrever", b"\xe2\x80\x8b", b"\xff", b"\xfe", b"\xff\xfe", b"\xc3", b"\xc3(",
    b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"\xef\xbf\xbd", b"{le=\"1\"} 5", b"# EOF", b"a=b,c=d", b"${jndi:x}", b"%00", b"%n%s",
    b" ", b"'; drop", b"\xf0\x9f\x92\xa9", b"a" * 255, b"\xff" * 255,
]  # fmt: skip


def test_names_that_mean_no_good(cgroups):
    """Everything that tacho writes them into can be read, and none is taken for another."""
    parent = cgroups("names")
    place = os.fsencode(str(parent.directory))
    for name in HOSTILE:
        os.mkdir(place + b"/" + name)
    try:
        with Tacho({"targets": [target("h", f"{parent.path}/*")]}) as tacho:
            wait_until(lambda: len(tacho.targets()["targets"]) == len(HOSTILE), 10, "all are watched")
            text = tacho.text()
            judged = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
            assert (judged.returncode, judged.stdout, judged.stderr) == (0, "", "")
            for samples in (Samples.parse(text), Samples.parse(tacho.text(OPENMETRICS), openmetrics=True)):
                groups = {labels["cgroup"] for labels, _ in samples.all("tacho_target_info")}
                assert len(groups) == len(samples.all("tacho_target_info")) == len(HOSTILE)
            rows = json.loads(tacho.http("/api/v1/targets?limit=100")[2])["rows"]
            assert len({row["id"] for row in rows}) == len(HOSTILE)
            shown = subprocess.run([paths.TACHO, "top", "--json", f"--url=http://{tacho.address}"], capture_output=True, text=True).stdout
            assert shown.isascii() and shown.count("\n") == 1 and len(json.loads(shown)["rows"]) == len(HOSTILE)
            assert not [char for char in tacho.process.output if ord(char) < 32 and char != "\n" or ord(char) == 127]
    finally:
        for name in HOSTILE:
            os.rmdir(place + b"/" + name)
