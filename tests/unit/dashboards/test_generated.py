"""What is committed is what the jsonnet says, it is formatted, and the mixin can be imported and changed."""

import json
import pathlib
import subprocess

import pytest

from support.paths import REPOSITORY
from support.process import run

GRAFANA = REPOSITORY / "grafana"
SOURCES = sorted(GRAFANA.rglob("*.libsonnet"))


def files_below(root: pathlib.Path) -> dict[str, str]:
    """Generated files by path; hand-written neighbours are not among them."""
    found = [*(root / "grafana/generated").glob("*"), *(root / "deploy/prometheus").glob("tacho-*.yaml")]
    return {str(file.relative_to(root)): file.read_text() for file in found}


@pytest.mark.parametrize("generator", ["grafana/generate", "deploy/kubernetes/generate"])
def test_a_generator_that_is_asked_for_help_writes_nothing(tmp_path, generator):
    for word, code in (("--help", 0), ("--bogus", 2)):
        asked = subprocess.run([REPOSITORY / generator, word], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert asked.returncode == code and "DIRECTORY" in asked.stdout + asked.stderr
    assert list(tmp_path.iterdir()) == []


def test_committed_files_are_up_to_date(tmp_path):
    run([GRAFANA / "generate", tmp_path])
    fresh, committed = files_below(tmp_path), files_below(REPOSITORY)
    assert len(fresh) == 5
    assert set(committed) == set(fresh), "grafana/generate writes exactly these"
    stale = [path for path, text in fresh.items() if committed[path] != text]
    assert not stale, "run grafana/generate and commit"


def test_a_change_of_the_sources_is_noticed(tmp_path):
    run(["cp", "-r", GRAFANA, tmp_path / "grafana"])
    panel = tmp_path / "grafana/dashboards/target_requests.libsonnet"
    assert "title: 'Rate'" in panel.read_text()
    panel.write_text(panel.read_text().replace("title: 'Rate'", "title: 'Speed'"))
    run([tmp_path / "grafana/generate"])
    changed = {path for path, text in files_below(tmp_path).items() if files_below(REPOSITORY).get(path) != text}
    assert changed == {"grafana/generated/tacho-target.json"}


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: file.name)
def test_format(file):
    run(["jsonnetfmt", "--test", file])


def test_configuration_of_an_importer_reaches_rules_and_dashboards():
    evaluated = json.loads(run([
        "jsonnet", "--jpath", GRAFANA, "--exec",
        "local m = (import 'mixin.libsonnet') + {_config+:: {selector: 'job=\"mine\"', saturation: 0.5,"
        " dashboards+: {tags: ['mine']}, runbookUrl: 'https://runbooks.example/%s.html'}};"
        "{rules: m.prometheusRules, alerts: m.prometheusAlerts, dashboards: m.grafanaDashboards}",
    ]))  # fmt: skip
    rules = [rule for part in ("rules", "alerts") for group in evaluated[part]["groups"] for rule in group["rules"]]
    assert len(rules) > 15
    assert all('job="mine"' in rule["expr"] and "(.+/)?tacho" not in rule["expr"] for rule in rules)
    saturated = next(rule for rule in rules if rule.get("alert") == "TachoTargetSaturated")
    assert "> 0.5" in saturated["expr"]
    assert saturated["annotations"]["runbook_url"] == "https://runbooks.example/tachotargetsaturated.html"
    assert {tuple(dashboard["tags"]) for dashboard in evaluated["dashboards"].values()} == {("mine",)}
