"""Memory under many readers: the limits that tacho is shipped with suffice."""

import contextlib
import gzip
import threading

import pytest

from support import attack, memory
from support.cgroup import Cgroup
from support.tacho import Tacho, target
from support.waiting import wait_until

MEBIBYTE = 1 << 20
TARGETS = 1000
READERS = 10
ROUNDS = 3
# Of the DaemonSet, with what the kernel keeps for it: 72 KiB a target.
SHIPPED = 256 * MEBIBYTE
# What ten readers may make of it, without that.
OWN = 96 * MEBIBYTE


def read_all(port: int, answers: list) -> None:
    for _ in range(ROUNDS):
        answers.append(attack.scrape(port, headers="Accept-Encoding: gzip\r\n", timeout=60))


@pytest.fixture
def limited():
    if reason := memory.why_not():
        pytest.skip(reason)
    with memory.MemoryCgroup("readers") as group:
        yield group


def test_ten_readers_of_a_thousand_targets(cgroups, limited):
    parent = cgroups("readers")
    config = {"targets": [target("r", f"{parent.path}/r*")], "limits": {"max_targets": TARGETS}}
    limited.limit(SHIPPED)
    with contextlib.ExitStack() as stack:
        for number in range(TARGETS):
            stack.enter_context(Cgroup(f"r{number}", parent))
        with Tacho(config, prefix=limited.prefix, start_timeout=60) as tacho:
            wait_until(lambda: len(tacho.targets()["targets"]) == TARGETS, 30, "all are watched")
            limited.limit(min(SHIPPED, limited.of_kernel + OWN))
            answers: list = []
            readers = [threading.Thread(target=read_all, args=(tacho.port, answers)) for _ in range(READERS)]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
            print(f"{limited.used / MEBIBYTE:.0f} MiB, {limited.of_kernel / MEBIBYTE:.0f} of them the kernel's")
            assert tacho.process.running, "it was ended for want of memory"
    assert len(answers) == READERS * ROUNDS and {status for status, _ in answers} == {200}
    pages = {body: gzip.decompress(body) for _, body in answers}
    for page in pages.values():
        assert page.count(b"\ntacho_requests_total{") == TARGETS and page.count(b"\ntacho_targets 1000\n") == 1
    assert len(pages) < len(answers), "who asks while a page is made for others gets the same next one"
