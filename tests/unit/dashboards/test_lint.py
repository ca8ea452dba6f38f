"""The dashboards keep the rules, and every rule finds what it is there for."""

import copy
import re

import pytest

from support import dashboard_lint, dashboards
from support.process import run

ALL = dashboards.dashboards()


@pytest.mark.parametrize("name", ALL)
def test_dashboard_keeps_the_rules(name):
    assert dashboard_lint.findings(ALL[name]) == []


def test_there_are_three_with_panels():
    assert set(ALL) == {"tacho-overview", "tacho-target", "tacho-health"}
    assert all(name == dashboard["uid"] for name, dashboard in ALL.items())
    assert all(len(list(dashboards.panels(dashboard))) > 10 for dashboard in ALL.values())


def first(dashboard):
    return next(dashboards.panels(dashboard))


def query(dashboard, old, new):
    target = first(dashboard)["targets"][0]
    assert old in target["expr"]
    target["expr"] = target["expr"].replace(old, new)


def variable(dashboard, name):
    return dashboards.variables(dashboard)[name]


# How to spoil the dashboard Target, and what is said then.
SPOILED = {
    "editable": (lambda d: d.update(editable=True), "editable"),
    "uid": (lambda d: d.update(uid=None), "uid"),
    "schema": (lambda d: d.update(schemaVersion=36), "schemaVersion"),
    "id": (lambda d: d.update(id=7), "an id"),
    "no description": (lambda d: d.pop("description"), "has no description"),
    "no data source": (lambda d: d["templating"]["list"].pop(0), "variable datasource"),
    "no job": (lambda d: d["templating"]["list"].remove(variable(d, "job")), "variable job: is missing"),
    "one instance": (lambda d: variable(d, "instance").update(multi=False), "variable instance"),
    "all": (lambda d: variable(d, "instance").update(allValue=".*"), "variable instance"),
    "label": (lambda d: variable(d, "pod").pop("label"), "variable pod: has no label"),
    "refresh": (lambda d: variable(d, "pod").update(refresh=1), "refreshed"),
    "variable's source": (lambda d: variable(d, "pod").update(datasource={"uid": "x"}), "variable pod: its data"),
    "untitled": (lambda d: first(d).update(title=""), "has no title"),
    "twice": (lambda d: first(d).update(title="Duration"), "twice"),
    "undescribed": (lambda d: first(d).update(description="A panel."), "description lacks"),
    "no caveat": (lambda d: first(d).update(description="A.\n\n**Not to be trusted** "), "description lacks"),
    "unit": (lambda d: first(d)["fieldConfig"]["defaults"].pop("unit"), "has no unit"),
    "no query": (lambda d: first(d).update(targets=[]), "has no query"),
    "fixed source": (lambda d: first(d).update(datasource={"type": "prometheus", "uid": "P1"}), "its data source"),
    "fixed source of a query": (lambda d: first(d)["targets"][0].update(datasource=None), "its data source"),
    "no job in a query": (lambda d: query(d, 'job=~"$job", ', ""), 'restricted to job=~"$job"'),
    "no instance in a query": (lambda d: query(d, 'instance=~"$instance"', 'i="1"'), "restricted to instance"),
    "no selector": (lambda d: first(d)["targets"][0].update(expr="sum(up)"), "up is not restricted"),
    "unknown series": (lambda d: query(d, "tacho_requests_total", "tacho_request_total"), "is not exported"),
    "a histogram's own name": (
        lambda d: query(d, "tacho_requests_total", "tacho_request_duration_seconds"), "is not exported"),
    "fixed range": (lambda d: query(d, "[$__rate_interval]", "[5m]"), "[5m] is not"),
    "nothing asked": (lambda d: first(d)["targets"][0].update(expr="vector(1)"), "asks for no series"),
    "same id": (lambda d: first(d).update(id=1), "ids of panels"),
    "too wide": (lambda d: first(d)["gridPos"].update(x=20), "wider than the grid"),
    "overlap": (lambda d: first(d)["gridPos"].update(x=6), "covers"),
}  # fmt: skip


@pytest.mark.parametrize("case", SPOILED)
def test_every_rule_finds_its_case(case):
    spoil, said = SPOILED[case]
    dashboard = copy.deepcopy(ALL["tacho-target"])
    spoil(dashboard)
    found = dashboard_lint.findings(dashboard)
    assert any(said in finding for finding in found), found


def test_series_are_found_in_an_expression():
    expr = 'sum by (tacho_x) (rate(tacho_a_total{job=~"$job", m!~".+_b"}[5m])) / on (up) up{i="tacho_c{"} or process_d'
    assert [name for name, _ in dashboard_lint.series_of(expr)] == ["tacho_a_total", "up", "process_d"]


def test_what_is_planned_is_not_exported_yet():
    there = set(dashboards.PLANNED_FAMILIES) & dashboards.series_names()
    assert not there, "it exists now: take it out of PLANNED_FAMILIES in tests/support/dashboards.py"


def test_unknown_variables_are_an_error():
    values = {"job": "tacho", "__rate_interval": "10s"}
    assert dashboards.filled_in('up{job=~"${job}$"}[$__rate_interval]', values) == 'up{job=~"tacho$"}[10s]'
    with pytest.raises(ValueError, match="no value for .instance"):
        dashboards.filled_in('up{instance=~"$instance"}', values)


@pytest.mark.parametrize("name", ALL)
def test_expressions_parse(name, tmp_path):
    """promtool reads expressions only in rules."""
    values = {variable: ".+" for variable in dashboards.variables(ALL[name])}
    values |= {"__rate_interval": "1m", "compare": "1h"}
    queries = dashboards.panel_queries(ALL[name]) + [query for query, _ in dashboards.variable_queries(ALL[name])]
    lines = ["groups:", "- name: panels", "  rules:"]
    for query in queries:
        # Different names: promtool warns of duplicates.
        record = "panel:" + re.sub(r"[^a-zA-Z0-9]", "_", query.place)
        lines += [f"  - record: {record}", "    expr: |"]
        lines += [f"      {line}" for line in dashboards.filled_in(query.expr, values).splitlines()]
    rules = tmp_path / "panels.yaml"
    rules.write_text("\n".join(lines) + "\n")
    assert f"SUCCESS: {len(queries)} rules found" in run(["promtool", "check", "rules", rules])
