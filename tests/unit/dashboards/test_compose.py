"""The compose file is valid, and what its containers are told to read is there."""

import json
import pathlib
import re

import pytest
import yaml

from support import dashboards
from support.paths import REPOSITORY
from support.process import run

COMPOSE = REPOSITORY / "deploy" / "compose"


@pytest.fixture(scope="module")
def services() -> dict:
    """As docker-compose understands them, with absolute paths."""
    return yaml.safe_load(run(["docker-compose", "-f", COMPOSE / "compose.yaml", "config"]))["services"]


def mounts(service: dict) -> dict[str, pathlib.Path]:
    """Path on the host by path in the container, of what is not a volume."""
    found = {}
    for mount in service["volumes"]:
        # Of the long form, or source:target[:mode].
        words = [mount["source"], mount["target"]] if isinstance(mount, dict) else mount.split(":")
        if words[0].startswith("/"):
            found[words[1]] = pathlib.Path(words[0])
    return found


def on_host(service: dict, path: str) -> pathlib.Path:
    """Where a path of the container is in the repository."""
    for inside, outside in mounts(service).items():
        if pathlib.Path(path).is_relative_to(inside):
            return outside / pathlib.Path(path).relative_to(inside)
    raise FileNotFoundError(f"{path} is not mounted")


def test_ports_are_of_this_machine_only_and_images_pinned(services):
    for name, service in services.items():
        assert service["ports"] and all("127.0.0.1" in str(port) for port in service["ports"]), name
        assert service["image"].rpartition(":")[2][:1] in set("v123456789"), service["image"]
        assert all(source.exists() for source in mounts(service).values()), mounts(service)


def test_prometheus_scrapes_the_host_and_loads_the_rules(services, tmp_path):
    prometheus = services["prometheus"]
    configured = next(word for word in prometheus["command"] if word.startswith("--config.file="))
    file = on_host(prometheus, configured.partition("=")[2])
    configuration = yaml.safe_load(file.read_text())
    (job,) = configuration["scrape_configs"]
    assert (job["job_name"], job["honor_labels"]) == ("tacho", True)
    assert [group["targets"] for group in job["static_configs"]] == [["host.docker.internal:9435"]]
    assert any("host-gateway" in host for host in prometheus["extra_hosts"])
    (pattern,) = configuration["rule_files"]
    folder = on_host(prometheus, str(pathlib.PurePath(pattern).parent))
    loaded = set(folder.glob(pathlib.PurePath(pattern).name))
    assert loaded == {dashboards.RULES, dashboards.ALERTS}
    # promtool judges it with the paths of this machine.
    local = tmp_path / "prometheus.yml"
    local.write_text(file.read_text().replace("/etc/prometheus/tacho", str(folder)))
    assert "SUCCESS" in run(["promtool", "check", "config", local])


def test_tacho_is_started_where_a_container_reaches_it():
    """Another address than 127.0.0.1, which is the container itself there, and what quickstart serves if it is not told."""
    quickstart = (REPOSITORY / "deploy" / "quickstart").read_text()
    assert "\nlisten=127.0.0.1:9435\n" in quickstart
    commands = re.findall(r"deploy/quickstart\b[^\n`]*", (COMPOSE / "compose.yaml").read_text())
    assert commands and all(re.search(r"--listen :9435\b", command) for command in commands)
    (line,) = [line for line in (REPOSITORY / "README.md").read_text().splitlines() if line.startswith("$ docker compose")]
    assert "--web.listen-address=:9435" in line or "every address" in line


def test_grafana_finds_prometheus_and_the_dashboards(services):
    grafana = services["grafana"]
    provisioning = on_host(grafana, "/etc/grafana/provisioning")
    (source,) = yaml.safe_load((provisioning / "datasources/prometheus.yaml").read_text())["datasources"]
    assert source["type"] == "prometheus" and source["isDefault"]
    assert source["url"] == "http://prometheus:9090" and "prometheus" in services
    assert source["jsonData"]["timeInterval"] == yaml.safe_load(
        (COMPOSE / "prometheus.yml").read_text())["global"]["scrape_interval"]  # fmt: skip
    (provider,) = yaml.safe_load((provisioning / "dashboards/tacho.yaml").read_text())["providers"]
    assert on_host(grafana, provider["options"]["path"]) == dashboards.GENERATED
    home = on_host(grafana, grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert json.loads(home.read_text())["uid"] == "tacho-overview"
