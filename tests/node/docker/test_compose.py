"""The commands of README and compose.yaml that start Prometheus and Grafana in containers, as they are written there.

There is no registry here: Prometheus is Debian's under the image's name, Grafana a container that only waits.
"""

import json
import pathlib
import re
import shutil
import tempfile

import pytest
import yaml

from support import image
from support.containers import collect
from support.docker import DockerTacho, Server
from support.net import exchange
from support.paths import REPOSITORY
from support.readme import commands
from support.waiting import wait_until

COMPOSE = REPOSITORY / "deploy/compose/compose.yaml"
PROMETHEUS = 'FROM scratch\nCOPY root /\nUSER 65534\nENTRYPOINT ["/usr/bin/prometheus"]\n'


def as_here(engine, line: str) -> str:
    """Debian 12 has no `docker compose`, as README says: its docker-compose takes the same words."""
    return line.replace("docker compose", "docker-compose", 1) if engine.release == "bookworm" else line


@pytest.fixture
def images(engine):
    services = yaml.safe_load(COMPOSE.read_text())["services"]
    with tempfile.TemporaryDirectory() as directory:
        context = pathlib.Path(directory)
        collect(shutil.which("prometheus"), context / "root")
        (context / "root/prometheus").mkdir(mode=0o777)
        (context / "root/prometheus").chmod(0o777)
        (context / "Dockerfile").write_text(PROMETHEUS)
        engine.build(context, services["prometheus"]["image"])
    with tempfile.TemporaryDirectory() as directory:
        image.build_pause(engine, pathlib.Path(directory), services["grafana"]["image"])


def ask(path: str):
    status, _, body = exchange("127.0.0.1:9090", path)
    if status != 200:
        raise ConnectionError(f"{status}: {body[:80]!r}")  # it listens before it is ready
    return json.loads(body)["data"]


def test_prometheus_in_a_container_scrapes_tacho_and_loads_the_rules(engine, images):
    (line,) = [line for line in commands("Dashboards and alerts") if line.startswith("docker compose ")]
    (up,) = re.findall(r"^#   (docker compose .* up)$", COMPOSE.read_text(), re.MULTILINE)
    assert line.partition("#")[0].strip() == up
    (down,) = re.findall(r"`(docker compose .* down --volumes)`", COMPOSE.read_text())
    with DockerTacho(engine) as tacho, Server(engine, "web") as server, engine.shell(as_here(engine, line)) as compose:
        try:
            wait_until(lambda: tacho.scrape().has("tacho_target_info", container_id=server.id), 5, "web is a target")
            server.serve(31)
            wait_until(lambda: ask("/api/v1/query?query=up%7Bjob%3D%22tacho%22%7D")["result"][0]["value"][1] == "1", 60,
                       "Prometheus has scraped tacho", interval=0.5)  # fmt: skip
            names = {group["name"] for group in ask("/api/v1/rules")["groups"]}
            assert {"tacho.targets", "tacho.targets.alerts"} <= names
            query = "/api/v1/query?query=tacho_requests_total%7Bcontainer%3D%22web%22%7D"
            wait_until(lambda: [one["value"][1] for one in ask(query)["result"]] == ["31"], 20, "what it counts is there",
                       interval=0.5)  # fmt: skip
        finally:
            ended = engine.shell(as_here(engine, down))
            assert ended.wait(timeout=60) == 0, ended.output
        compose.wait(timeout=20)
    assert engine.ask("/volumes")["Volumes"] in ([], None)
