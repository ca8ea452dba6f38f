"""Reading the configuration again: counters stay, a bad file changes nothing."""

import concurrent.futures
import time

import pytest

from support.clients import exact
from support.servers import ExactServer
from support.tacho import Tacho, target
from support.waiting import wait_until

BAD = "targets:\n  - name: kept\n    cgroupp: /x\n"


def last_reload_was_good(tacho) -> bool:
    return tacho.scrape().get("tacho_config_last_reload_successful") == 1


@pytest.mark.parametrize("by_signal", [False, True], ids=["POST /-/reload", "SIGHUP"])
def test_counters_survive_good_and_bad_configurations(cgroups, by_signal):
    kept, added = cgroups("kept"), cgroups("added")
    config = {"targets": [target("kept", kept.path)]}
    with ExactServer(kept.prefix) as server, ExactServer(added.prefix) as other, Tacho(config) as tacho:
        tacho.wait_for_target("kept")
        exact(server.address, 211, connections=3)
        assert tacho.settled("kept").get("tacho_requests_total", target="kept") == 211
        assert last_reload_was_good(tacho)

        tacho.configure(BAD)
        status = tacho.reload(by_signal)
        assert status in (None, 500)
        wait_until(lambda: not last_reload_was_good(tacho), 5, "the bad configuration is reported")
        complaint = tacho.process.wait_for_line(r"tacho\.yaml:3:5: ")
        assert "cgroup" in complaint.string, "the nearest valid key is named"
        exact(server.address, 101)
        assert tacho.settled("kept").get("tacho_requests_total", target="kept") == 211 + 101

        tacho.configure({"targets": [target("kept", kept.path), target("added", added.path)]})
        status = tacho.reload(by_signal)
        assert status in (None, 200)
        wait_until(lambda: last_reload_was_good(tacho), 5, "the good configuration is reported")
        tacho.wait_for_target("added", timeout=2)
        exact(server.address, 23)
        exact(other.address, 29)
        tacho.settled("added")
        samples = tacho.settled("kept")
        assert samples.get("tacho_requests_total", target="kept") == 211 + 101 + 23
        assert samples.get("tacho_requests_total", target="added") == 29

        tacho.configure({"targets": [target("added", added.path)]})
        tacho.reload(by_signal)
        wait_until(lambda: tacho.scrape().get("tacho_targets") == 1, 5, "the target has ended")
        assert tacho.requests("added") == 29


def test_a_file_that_is_being_written_ends_no_target(cgroups):
    """Whoever writes it anew empties it first; a reload that was asked for before may come just then."""
    kept = cgroups("kept")
    with ExactServer(kept.prefix) as server, Tacho({"targets": [target("kept", kept.path)]}) as tacho:
        tacho.wait_for_target("kept")
        good = tacho.config_file.read_text()
        exact(server.address, 211, connections=3)
        tacho.configure("")
        assert tacho.reload() == 500
        assert not last_reload_was_good(tacho)
        tacho.process.wait_for_line("it is empty")
        exact(server.address, 101)
        assert tacho.settled("kept").get("tacho_requests_total", target="kept") == 211 + 101
        tacho.configure(good)
        wait_until(lambda: tacho.reload() == 200, 5, "the complete one is taken")
        # Who wants the defaults says so.
        tacho.configure("{}\n")
        wait_until(lambda: tacho.reload() == 200, 5, "the defaults are taken")


def test_reload_wants_a_post(cgroups):
    with Tacho({"targets": [target("none", "/nothing-here")]}) as tacho:
        assert tacho.http("/-/reload")[0] == 405
        assert tacho.reload() == 200


def test_reloads_lose_nothing_of_a_process(agree):
    """Its threads are told by their process alone: no moment may pass in which none is looked for."""
    with ExactServer() as server:
        config = {"targets": [{"name": "exact", "process": {"port": server.port}}]}
        with Tacho(config) as tacho, tacho.watch("exact") as change:
            with concurrent.futures.ThreadPoolExecutor() as pool:
                client = pool.submit(exact, server.address, 300_007, connections=3)
                reloads = 0
                while not client.done():  # one a second
                    assert tacho.reload() == 200
                    reloads += 1
                counted = client.result()
        assert reloads >= 3, "the reloads came too late"
        agree("process target, reloaded all the time", counted, change)


def test_reloads_come_at_most_once_a_second_and_from_no_page():
    with Tacho() as tacho:
        before = tacho.process.line_count
        begin = time.monotonic()
        for _ in range(13_000):
            tacho.reload(by_signal=True)
        assert [tacho.reload() for _ in range(3)] == [200, 200, 200]
        took = time.monotonic() - begin
        lines = tacho.process.output.splitlines()[before:]
        done = sum("configuration read again" in line for line in lines)
        assert 3 <= done <= took + 2, f"{done} reloads in {took:.1f} s"
        for header in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"X-Forwarded-For": "192.0.2.1"}, {"Via": "1.1 proxy"}):
            assert tacho.http("/-/reload", method="POST", headers=header)[0] == 403, header


def test_what_is_wrong_with_a_configuration_is_told_to_the_log_alone():
    with Tacho({"targets": []}) as tacho:
        tacho.configure("window: 'secret-token-value-1234'\n")
        status, _, body = tacho.http("/-/reload", method="POST")
        assert status == 500 and b"secret" not in body and b"log" in body
        tacho.process.wait_for_line("secret-token-value-1234")
