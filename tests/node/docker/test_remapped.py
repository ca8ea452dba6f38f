"""An engine whose containers have user ids of their own: README's command with what it says of `userns-remap`."""

import pathlib

import pytest

from support import image
from support.docker import DockerTacho, Server, run_line
from support.process import run
from support.waiting import wait_until

PRIME = 103


@pytest.fixture
def remapped(engine, tmp_path):
    """The engine with its containers' root as the first of a user's further ids; its data lie elsewhere then."""
    files = [pathlib.Path("/etc") / name for name in ("subuid", "subgid")]
    for file in files:
        (tmp_path / file.name).write_text("daemon:100000:65536\n")
        run(["mount", "--bind", tmp_path / file.name, file])
    engine.dockerd.stop()
    engine.start_dockerd("--userns-remap=daemon")
    for name, build in (("tacho", image.build_from_tree), ("exact_server", image.build_exact_server)):
        (tmp_path / name).mkdir()
        build(engine, tmp_path / name, name)
    yield engine
    engine.dockerd.stop()
    engine.start_dockerd()
    for file in files:
        run(["umount", file])


def test_containers_with_ids_of_their_own_have_their_names(remapped):
    root = remapped.ask("/info")["DockerRootDir"]
    assert root.startswith("/var/lib/docker/100000.")
    line = run_line(remapped)
    for words, others in (("docker run ", "docker run --userns host "), ("--volume /var/lib/docker/", f"--volume {root}/")):
        assert line.count(words) == 1
        line = line.replace(words, others)
    with Server(remapped, "web") as server, DockerTacho(remapped, line=line) as tacho:
        wait_until(lambda: tacho.scrape().has("tacho_target_info", container="web", container_id=server.id), 5, "it has its name")
        server.serve(PRIME)
        wait_until(lambda: tacho.scrape().get("tacho_requests_total", container="web") == PRIME, 5, "all requests are counted")
