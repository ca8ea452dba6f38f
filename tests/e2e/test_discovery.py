"""Which targets there are: cgroups that come and go, globs, processes, and no configuration at all."""

import subprocess
import time

import pytest

from support import paths
from support.clients import exact
from support.cgroup import Cgroup
from support.servers import ExactServer
from support.tacho import Tacho, target
from support.waiting import wait_until


def test_a_late_cgroup_is_seen_within_a_second_and_counted_from_its_first_request(cgroups, agree):
    parent = cgroups("late")
    with Tacho({"targets": [target("late", f"{parent.path}/web")]}) as tacho:
        assert not tacho.scrape().has("tacho_requests_total", target="late")
        group = Cgroup("web", parent)
        made = time.monotonic()
        wait_until(lambda: tacho.scrape().has("tacho_requests_total", target="late"), 5, "the target", interval=0.02)
        assert time.monotonic() - made < 1
        with ExactServer(group.prefix) as server, tacho.watch("late") as change:
            counted = exact(server.address, 211, connections=3)
        agree("cgroup made after tacho", counted, change)


def test_a_removed_cgroup_leaves_when_everybody_has_read_its_last_values(cgroups):
    parent = cgroups("removed")
    with Tacho({"targets": [target("gone", f"{parent.path}/gone"), target("stays", f"{parent.path}/stays")]}) as tacho:
        stays = Cgroup("stays", parent)
        with Cgroup("gone", parent) as group, ExactServer(group.prefix) as server, ExactServer(stays.prefix):
            tacho.wait_for_target("gone")
            tacho.wait_for_target("stays")
            exact(server.address, 23)
            assert tacho.settled("gone").get("tacho_requests_total", target="gone") == 23
            exact(server.address, 29)
        # Nothing was scraped since the last requests: their count must not be lost.
        assert tacho.requests("gone") == 23 + 29
        # Nor for anybody else who reads, whoever has read before.
        for reader in ("Prometheus/a", "Prometheus/b", "Prometheus/a", "curl"):
            text = tacho.http("/metrics", headers={"User-Agent": reader})[2].decode()
            assert f'tacho_requests_total{{target="gone"}} {23 + 29}\n' in text, reader
        wait_until(
            lambda: not [name for name, labels in tacho.scrape().values if ("target", "gone") in labels],
            150,
            "no series of the removed target",
        )
        assert tacho.requests("stays") == 0


def test_a_cgroup_made_again_goes_on_counting(cgroups, agree):
    parent = cgroups("again")
    with Tacho({"targets": [target("again", f"{parent.path}/web")]}) as tacho:
        for made in range(1, 4):
            with Cgroup("web", parent) as group, ExactServer(group.prefix) as server:
                tacho.wait_for_target("again")
                counted = exact(server.address, 23)
                change = tacho.settled("again")
                assert change.get("tacho_requests_total", target="again") == made * counted.requests
            wait_until(lambda: tacho.scrape().get("tacho_targets") == 0, 2, "the target ended")


def test_descendants_belong_to_their_target(cgroups, agree):
    parent = cgroups("parent")
    inner = Cgroup("inner", parent)
    innermost = Cgroup("innermost", inner)
    with ExactServer(innermost.prefix) as server, Tacho({"targets": [target("parent", parent.path)]}) as tacho:
        with tacho.watch("parent") as change:
            counted = exact(server.address, 211)
        agree("cgroup below the target's", counted, change)
        late = Cgroup("late", inner)
        with ExactServer(late.prefix) as another, tacho.watch("parent") as change:
            # The kernel's news of the new cgroup may need a moment to arrive.
            wait_until(lambda: exact(another.address, 1) and tacho.requests("parent") > 211, 1, "the late one belongs")
        assert change.requests >= 1


def test_a_glob_makes_one_target_of_each_cgroup(cgroups):
    parent = cgroups("glob")
    groups = [Cgroup(name, parent) for name in ("web-1", "web-2", "db")]
    with Tacho({"targets": [target("web", f"{parent.path}/web-*")]}) as tacho:
        wait_until(lambda: len(tacho.scrape().all("tacho_requests_total")) == 2, 2, "two targets")
        for group, prime in zip(groups, (23, 29)):
            with ExactServer(group.prefix) as server:
                exact(server.address, prime)
            # Named alike: without a better name their path tells them apart.
            assert tacho.settled("web").get("tacho_requests_total", target="web", cgroup=group.path) == prime
        assert not tacho.scrape().has("tacho_target_info", cgroup=groups[2].path)


def test_process_rules_match_the_listening_port(cgroups, agree):
    with ExactServer() as server, ExactServer() as other:
        config = {"targets": [{"name": "exact", "process": {"exe": "/**/exact_server", "port": server.port}}]}
        with Tacho(config) as tacho, tacho.watch("exact") as change:
            exact(other.address, 101)
            counted = exact(server.address, 211, connections=2)
        agree("process rule: exe and port", counted, change)


def test_ports_restrict_a_target(cgroups, agree):
    group = cgroups("ports")
    with ExactServer(group.prefix) as server, ExactServer(group.prefix) as other:
        config = {"targets": [target("ports", group.path, ports=[server.port])]}
        with Tacho(config) as tacho, tacho.watch("ports") as change:
            exact(other.address, 101)
            counted = exact(server.address, 211, connections=2)
        agree("cgroup with ports", counted, change)


def test_without_configuration_every_listener_is_a_target(cgroups, agree):
    before, after = cgroups("listener"), cgroups("listener-late")
    with ExactServer(before.prefix) as server, ExactServer() as lone, Tacho() as tacho:
        wait_until(lambda: tacho.scrape().target_of(before.path), 2, "the cgroup with a listener")
        name = tacho.scrape().target_of(before.path)
        with tacho.watch(name) as change:
            counted = exact(server.address, 211, connections=2)
        agree("no configuration: a cgroup", counted, change)

        # One that starts to listen later.
        with ExactServer(after.prefix) as late:
            listening = time.monotonic()
            wait_until(lambda: tacho.scrape().target_of(after.path), 5, "the late listener")
            assert time.monotonic() - listening < 1
            with tacho.watch(tacho.scrape().target_of(after.path)) as change:
                counted = exact(late.address, 101)
            agree("no configuration: a late cgroup", counted, change)

        # A process in the root cgroup, where nothing else tells it apart.
        of_process = [
            entry["target"] for entry in tacho.targets()["targets"] if "exact_server" in entry["target"]
        ]
        assert len(of_process) == 1, tacho.targets()
        with tacho.watch(of_process[0]) as change:
            counted = exact(lone.address, 103)
        agree("no configuration: a process", counted, change)


def test_excluded_cgroups_are_no_targets(cgroups):
    wanted, unwanted = cgroups("wanted"), cgroups("unwanted")
    config = {"discovery": {"listeners": "always", "exclude": [unwanted.path]}}
    with ExactServer(wanted.prefix), ExactServer(unwanted.prefix), Tacho(config) as tacho:
        wait_until(lambda: tacho.scrape().target_of(wanted.path), 2, "the wanted cgroup")
        assert not tacho.scrape().has("tacho_target_info", cgroup=unwanted.path)


def test_more_targets_than_places_are_counted_together(cgroups):
    parent = cgroups("many")
    groups = [Cgroup(f"n{number}", parent) for number in range(5)]
    config = {"targets": [target("n", f"{parent.path}/n*")], "limits": {"max_targets": 3}}
    with Tacho(config) as tacho:
        wait_until(lambda: tacho.scrape().has("tacho_requests_total", target="other"), 2, "the target other")
        for group in groups:
            with ExactServer(group.prefix) as server:
                exact(server.address, 23)
        wait_until(lambda: tacho.scrape().sum("tacho_requests_total") == 5 * 23, 2, "all requests are counted")
        samples = tacho.scrape()
        assert samples.get("tacho_requests_total", target="other") in (2 * 23, 3 * 23)
        assert samples.get("tacho_targets_overflowed_total") >= 2


@pytest.mark.parametrize("directory", ["/nonexistent", "/etc/passwd", "/tmp"])
def test_what_is_no_mount_of_cgroups_is_refused(directory):
    run = subprocess.run(
        [paths.require(paths.TACHO), "plan", f"--path.cgroupfs={directory}"], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 1
    assert f"cgroup mount {directory}: " in run.stderr and "--path.cgroupfs" in run.stderr
