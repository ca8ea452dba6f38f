"""Rules and alerts: promtool's verdict on them, a case of each that fires and one that does not, and their runbook."""

import pathlib
import re

import pytest
import yaml

from support import dashboards
from support.process import Process, run

HERE = pathlib.Path(__file__).resolve().parent
CASES = sorted((HERE / "rules").glob("*.yaml"))
RUNBOOK = dashboards.RULES.parent / "runbook.md"
ALERTS = {rule["alert"]: rule for rule in dashboards.rules(dashboards.ALERTS)}
RECORDS = {rule["record"]: rule for rule in dashboards.rules(dashboards.RULES)}


@pytest.mark.parametrize("file", [dashboards.RULES, dashboards.ALERTS], ids=lambda file: file.stem)
def test_promtool_accepts_them(file):
    assert f"SUCCESS: {len(dashboards.rules(file))} rules found" in run(["promtool", "check", "rules", file])


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_cases(file):
    run(["promtool", "test", "rules", file])


def test_a_wrong_threshold_fails_a_case(tmp_path):
    """The cases are real: with another rule they do not hold."""
    rules = dashboards.ALERTS.read_text()
    assert "ratio_rate5m{job=~\"(.+/)?tacho\"} > 0.5" in rules
    (tmp_path / "tacho-alerts.yaml").write_text(rules.replace("} > 0.5", "} > 0.8"))
    case = yaml.safe_load((HERE / "rules" / "targets.yaml").read_text())
    case["rule_files"] = [str(dashboards.RULES), "tacho-alerts.yaml"]
    (tmp_path / "case.yaml").write_text(yaml.safe_dump(case))
    test = Process(["promtool", "test", "rules", tmp_path / "case.yaml"])
    assert test.wait() != 0
    assert "TachoQueueingDominates" in test.output and "TachoTargetSaturated" not in test.output


def name_of(rule: dict) -> str:
    return rule.get("record") or rule["alert"]


def expectations() -> dict[str, list[bool]]:
    """By alert: whether each of its cases expects it to fire."""
    found: dict[str, list[bool]] = {}
    for file in CASES:
        for test in yaml.safe_load(file.read_text())["tests"]:
            for case in test.get("alert_rule_test", []):
                found.setdefault(case["alertname"], []).append(bool(case["exp_alerts"]))
    return found


def test_each_alert_has_a_case_that_fires_and_one_that_does_not():
    found = expectations()
    assert set(found) == set(ALERTS)
    lacking = [name for name, fires in found.items() if set(fires) != {True, False}]
    assert not lacking, "no case that fires, or none that does not"


def test_each_alert_has_a_section_of_the_runbook_and_each_section_an_alert():
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", RUNBOOK.read_text(), re.MULTILINE | re.DOTALL))
    assert set(sections) == set(ALERTS)
    for name, text in sections.items():
        for part in ("**Means**", "**Look**", "**Do**"):
            assert part in text, f"{name}: the runbook lacks {part}"
        assert ALERTS[name]["annotations"]["runbook_url"] == f"deploy/prometheus/runbook.md#{name.lower()}"


@pytest.mark.parametrize("name", ALERTS)
def test_alert_says_what_and_where(name):
    rule = ALERTS[name]
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert rule["annotations"]["summary"].endswith(".")
    if name != "TachoExporterAbsent":  # of which nothing is there to be named
        assert "{{ $labels." in rule["annotations"]["description"]


def test_records_are_named_by_level_metric_and_operations():
    for record in RECORDS:
        assert re.fullmatch(r"instance_target:tacho_[a-z_]+:(rate|mean|ratio|p\d+_rate|ratio_rate)5m", record), record


@pytest.mark.parametrize("rule", [*RECORDS.values(), *ALERTS.values()], ids=name_of)
def test_rule_asks_for_what_exists_and_only_of_tacho(rule):
    known = dashboards.series_names() | dashboards.native_names()
    known |= dashboards.PROMETHEUS_FAMILIES | set(dashboards.PLANNED_FAMILIES) | set(RECORDS)
    # A series is what a selector follows; all of ours have one.
    series = re.findall(r"([a-zA-Z_:][\w:]*)(\{[^}]*\})", rule["expr"])
    assert series
    for name, selector in series:
        assert name in known, f"{name} does not exist"
        assert 'job=~"(.+/)?tacho"' in selector, f"{name} is asked of every job"
    plain = re.sub(r'"[^"]*"', "", rule["expr"])
    bare = re.findall(r"(?<![\w:])(?:tacho_|process_|instance_target:)[\w:]+(?![\w:{])", plain)
    assert not bare, f"without a selector: {bare}"
