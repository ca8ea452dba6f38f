"""Start after start on a node of 20 containers: each one answers at once, knows all of them, and counts exactly."""

import contextlib
import re

import pytest

from support.docker import DockerTacho, Server
from support.engine import at_once
from support.exposition import Samples

SERVERS = 20
PRIME = 23
SHIM = r"unix:/run/containerd/s/[0-9a-f]{64}"


@pytest.fixture(scope="module")
def servers(engine):
    with contextlib.ExitStack() as stack:
        names = [f"server-{number}" for number in range(SERVERS)]
        yield [stack.enter_context(server) for server in at_once(lambda name: Server(engine, name), names)]


def scrapes_within_a_second(tacho: DockerTacho, count: int) -> Samples:
    for _ in range(count):
        text, seconds = tacho.timed_text()
        assert seconds < 1, f"a scrape took {seconds:.1f} s"
    return Samples.parse(text)


def test_every_start_answers_within_a_second_and_counts_exactly(engine, servers, starts):
    for start in range(starts):
        with DockerTacho(engine) as tacho:
            scrapes_within_a_second(tacho, 2)
            at_once(lambda number: servers[number].serve(PRIME + number), range(SERVERS))
            # containerd calls the shims, by sockets whose paths have 82 characters.
            at_once(lambda server: engine.ask(f"/containers/{server.id}/top"), servers)
            samples = scrapes_within_a_second(tacho, 3)
            names = {labels["container_id"]: labels.get("container") for labels, _ in samples.all("tacho_target_info")
                     if "container_id" in labels}  # fmt: skip
            assert {id: names.get(id) for id in (server.id for server in servers)} == {
                server.id: server.name for server in servers
            }
            counted = {server.name: samples.get("tacho_requests_total", container=server.name) for server in servers}
            assert counted == {server.name: PRIME + number for number, server in enumerate(servers)}, f"start {start}"
            calls = samples.all("tacho_dependency_calls_total")
            shims = [labels["peer"] for labels, _ in calls if re.fullmatch(SHIM, labels["peer"])]
            assert len(shims) >= SERVERS, "containerd calls the shims"
            peers = [labels for labels, _ in calls if labels["peer"] != "other"]
            # A peer that was connected to and not called yet has a slot and no series.
            assert len(peers) <= samples.get("tacho_map_entries", map="dependency_slots") <= len(peers) + SERVERS
            status, seconds = tacho.stop()
            assert status == 0 and seconds < 3, f"ended with {status} after {seconds:.1f} s"
