"""README's commands for Docker, as they are written there, and what a user hears who leaves a part of them out."""

import re
import signal

import pytest

from support.docker import DockerTacho, Server, run_line
from support.exposition import Samples
from support.net import exchange
from support.waiting import wait_until

PRIME = 101


@pytest.fixture(scope="module")
def server(engine):
    with Server(engine, "web") as running:
        yield running


def scrape() -> Samples:
    return Samples.parse(exchange("localhost:9435", "/metrics")[2].decode())


def test_the_command_serves_in_the_foreground_until_ctrl_c(engine, server):
    with engine.shell(run_line(engine)) as docker:
        docker.wait_for_line("listening on", timeout=20)
        server.serve(PRIME)
        wait_until(lambda: scrape().get("tacho_requests_total", container="web") == PRIME, 5, "all requests are counted")
        samples = scrape()
        assert samples.get("tacho_target_info", container="web", container_id=server.id) == 1
        assert all(value == 1 for _, value in samples.all("tacho_probe_attached"))
        docker.signal(signal.SIGINT)
        assert docker.wait(timeout=5) == 0
    # Other tests of this machine may have made cgroups of pods, whose names a node of Docker's does not know.
    log = "\n".join(line for line in docker.output.splitlines() if "no name: /var/log/containers" not in line)
    assert " WARN " not in log and " ERROR " not in log
    # Nothing that sounds like a fault: which ways the kernel refuses is what `tacho plan` tells.
    assert "refused" not in log and "fentry" not in log


PARTS = {
    r"--pid host ": "--pid host",
    r"--volume /sys/fs/cgroup:\S+ ": "--volume /sys/fs/cgroup:/sys/fs/cgroup:ro",
    r"--volume /var/lib/docker/containers:\S+ ": "--volume /var/lib/docker/containers:/var/lib/docker/containers:ro",
}


@pytest.mark.parametrize("part", PARTS)
def test_without_a_part_the_log_names_the_option_to_add(engine, server, part):
    line, removed = re.subn(part, "", run_line(engine))
    assert removed == 1
    with DockerTacho(engine, line=line) as tacho:
        attached = tacho.scrape().all("tacho_probe_attached")
        assert attached and all(value == 1 for _, value in attached), "it goes on without"
        warnings = [said for said in tacho.log.splitlines() if " WARN " in said]
        assert [other for other in PARTS if any(PARTS[other] in said for said in warnings)] == [part], tacho.log


def test_dockers_health_check_passes(engine, long_only):
    with DockerTacho(engine):
        wait_until(lambda: engine.ask("/containers/json")[0]["Status"].endswith("(healthy)"), 40, "it is healthy")


def test_without_the_capabilities_the_program_says_which_ones(engine):
    line = re.sub(r"--cap-add \S+ ", "", run_line(engine))
    docker = engine.shell(line)
    assert docker.wait(timeout=20) == 1
    assert "CAP_BPF is missing" in docker.output and "CAP_PERFMON is missing" in docker.output
