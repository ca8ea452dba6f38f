"""Whoever takes over the process that serves, or runs beside it, gains nothing."""

import contextlib
import errno
import json
import os
import pathlib
import subprocess

import pytest

from support import memory, net, paths
from support.clients import ExactBatches
from support.servers import ExactServer
from support.tacho import Tacho, target
from support.waiting import wait_until

PREFIXES = {"root": [], "the unit": ["setpriv", "--bounding-set=-all,+bpf,+perfmon", "--inh-caps=-all", "--no-new-privs"]}
FIRST_OWN_USER = 1_900_000_000  # with the collector's process number: the user of who serves
NOTHING = {"targets": [target("nothing", "/tacho-test-nothing")]}  # other servers of this machine are no matter


def test_programs_of_the_user_nobody_cannot_end_it():
    with Tacho(NOTHING) as tacho:
        web, *others = tacho.web_pid, *tacho.processes()[1:]
        for pid in {web, *others}:
            for what in ("STOP", "KILL"):
                tried = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "kill", f"-{what}", str(pid)],
                                       capture_output=True, text=True)  # fmt: skip
                assert tried.returncode != 0 and "not permitted" in tried.stderr
        assert tacho.web_pid == web and tacho.scrape().get("tacho_web_process_starts_total") == 1


def test_who_serves_reads_nobodys_terminal():
    ours, theirs = os.openpty()
    terminal = os.ttyname(theirs)
    address = f"127.0.0.1:{net.free_port()}"
    command = [paths.TACHO, f"--web.listen-address={address}"]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    try:
        wait_until(lambda: b"listening on" in os.read(ours, 1 << 16), 20, "it serves")
        shown = json.loads(net.exchange(address, "/targets")[2])["processes"]
        (web,) = (pathlib.Path(f"/proc/{each['pid']}") for each in shown if each["process"] == "web")
        open_for = {entry.name: int((web / "fdinfo" / entry.name).read_text().partition("flags:")[2].split()[0], 8)
                    for entry in (web / "fd").iterdir() if os.readlink(entry) == terminal}  # fmt: skip
        assert open_for, "its log goes there"
        assert {flags & os.O_ACCMODE for flags in open_for.values()} == {os.O_WRONLY}, open_for
    finally:
        process.terminate()
        process.wait()
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("rights", PREFIXES)
def test_a_taken_over_web_process_can_do_nothing(cgroups, agree, rights):
    """Under the unit it stays root, whom the kernel alone would let signal every process of root's."""
    group = cgroups("hole")
    with ExactServer(group.prefix) as server, ExactBatches(server.address, connections=2) as batches:
        config = {"targets": [target("hole", group.path)]}
        with Tacho(config, program=paths.TACHO_WITH_HOLE, prefix=PREFIXES[rights]) as tacho:
            with tacho.watch("hole") as change:
                counted = batches.send(211)
                code, _, body = tacho.http(f"/hole/attempts?collector={tacho.pid}")
            assert code == 200
            results = dict(line.rsplit(" ", 1) for line in body.decode().splitlines())
            user = FIRST_OWN_USER + tacho.pid if rights == "root" else 65534  # in a namespace of users where it is root outside
            assert results.pop(f"uid {user} is") == "0"
            assert len(results) >= 70
            succeeded = [name for name, code in results.items() if int(code) == 0]
            assert succeeded == [], f"the web process may: {succeeded}"
            # Not by chance: refused by the filter, not for want of an argument.
            others = {name: errno.errorcode[int(code)] for name, code in results.items() if int(code) != errno.EPERM}
            assert others == {}, others
            agree("beside a web process that was taken over", counted, change)
            web = tacho.web_pid
            with pytest.raises(OSError):
                tacho.http("/hole/crash", timeout=2)
            with tacho.watch("hole") as change:
                counted = batches.send(307)
            assert change.before.get("tacho_requests_total", target="hole") == 211
            assert tacho.web_pid != web
            agree("after the web process crashed", counted, change)
            tacho.process.wait_for_line("web process was ended by signal 11")


def test_a_flood_of_questions_costs_no_count_and_is_survived(cgroups, agree):
    group = cgroups("flooded")
    with ExactServer(group.prefix) as server, ExactBatches(server.address, connections=2) as batches:
        with Tacho({"targets": [target("flooded", group.path)]}, program=paths.TACHO_WITH_HOLE) as tacho:
            with tacho.watch("flooded") as change:
                resident = tacho.resident_bytes()
                with contextlib.suppress(OSError):  # what it says on the wrong socket ends it
                    tacho.http("/hole/flood", timeout=3)
                counted = batches.send(211)
                tacho.next_scrape()
            agree("beside a web process that floods", counted, change)
            assert tacho.scrape().get("tacho_web_process_starts_total") >= 2, "what is no message ends who sent it"
            assert tacho.resident_bytes() < resident + (8 << 20), "answers that nobody takes are not kept"


def test_who_keeps_all_answers_is_ended_before_who_counts(cgroups, agree):
    """They are memory that the collector has written: of its own, where memory is counted."""
    if reason := memory.why_not():
        pytest.skip(reason)
    group = cgroups("hoarded")
    config = {"targets": [target("hoarded", group.path)]}
    with (
        memory.MemoryCgroup("hoard") as limited,
        ExactServer(group.prefix) as server,
        ExactBatches(server.address, connections=2) as batches,
        Tacho(config, program=paths.TACHO_WITH_HOLE, prefix=limited.prefix) as tacho,
    ):
        with tacho.watch("hoarded") as change:
            limited.limit(limited.used + (24 << 20))
            with contextlib.suppress(OSError):
                print(tacho.http("/hole/hoard", timeout=30)[2], "answers are kept")
            counted = batches.send(211)
            tacho.process.wait_for_line("web process was ended by signal 9", timeout=30)
            tacho.next_scrape()
        agree("beside a web process that keeps all answers", counted, change)


def test_the_product_has_no_hole():
    with Tacho(NOTHING) as tacho:
        assert {tacho.http(f"/hole/{what}")[0] for what in ("attempts", "flood", "hoard", "crash")} == {404}
    assert b"/hole/" not in pathlib.Path(paths.TACHO).read_bytes()
