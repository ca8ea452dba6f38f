"""The committed dashboards and rules: their queries, and what stands for Grafana's variables in them."""

import dataclasses
import json
import pathlib
import re

import yaml

from support.paths import REPOSITORY

GENERATED = REPOSITORY / "grafana" / "generated"
RULES = REPOSITORY / "deploy" / "prometheus" / "tacho-rules.yaml"
ALERTS = REPOSITORY / "deploy" / "prometheus" / "tacho-alerts.yaml"
METRICS = REPOSITORY / "exporter" / "METRICS.md"

# Of Prometheus itself, about a scrape.
PROMETHEUS_FAMILIES = {"up", "scrape_duration_seconds", "scrape_samples_scraped"}
# Promised in the contract and not exported yet: queries have a fallback. What exists is taken out of here.
PLANNED_FAMILIES: dict[str, str] = {}


@dataclasses.dataclass(frozen=True)
class Query:
    """One query of a panel or one rule; `place` says where, as in "tacho / Overview: Requests A"."""

    place: str
    expr: str


def dashboards() -> dict[str, dict]:
    """By file name without .json."""
    return {file.stem: json.loads(file.read_text()) for file in sorted(GENERATED.glob("*.json"))}


def panels(dashboard: dict):
    """Panels with content, those inside rows included."""
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            yield from panel.get("panels", [])
        else:
            yield panel


def panel_queries(dashboard: dict) -> list[Query]:
    return [
        Query(f"{dashboard['title']}: {panel['title']} {target['refId']}", target["expr"])
        for panel in panels(dashboard)
        for target in panel["targets"]
    ]


def variables(dashboard: dict) -> dict[str, dict]:
    return {variable["name"]: variable for variable in dashboard["templating"]["list"]}


_LABEL_VALUES = re.compile(r"label_values\((?P<series>.+), (?P<label>\w+)\)")


def variable_queries(dashboard: dict) -> list[tuple[Query, str]]:
    """(series selector, label) of every variable that asks Prometheus."""
    found = []
    for name, variable in variables(dashboard).items():
        if variable["type"] == "query":
            match = _LABEL_VALUES.fullmatch(variable["query"]["query"])
            if match is None:
                raise ValueError(f"{dashboard['title']}: variable {name} is no label_values(series, label)")
            found.append((Query(f"{dashboard['title']}: variable {name}", match["series"]), match["label"]))
    return found


def rules(file: pathlib.Path) -> list[dict]:
    return [rule for group in yaml.safe_load(file.read_text())["groups"] for rule in group["rules"]]


def rule_queries(file: pathlib.Path) -> list[Query]:
    return [Query(rule.get("record") or rule["alert"], rule["expr"]) for rule in rules(file)]


def filled_in(expr: str, values: dict[str, str]) -> str:
    """The expression with `$name` and `${name}` replaced; ValueError when one has no value."""

    def value(match: re.Match) -> str:
        name = match[1] or match[2]
        if name not in values:
            raise ValueError(f"no value for ${name} in {expr}")
        return values[name]

    # A $ that no name follows ends a regular expression.
    return re.sub(r"\$(?:\{(\w+)\}|([a-zA-Z_]\w*))", value, expr)


def documented_families() -> dict[str, str]:
    """Type by name of all families that tacho exports, as METRICS.md has them."""
    return dict(re.findall(r"^\| `(\w+)` \| (\w+) \|", METRICS.read_text(), re.MULTILINE))


def native_names() -> set[str]:
    """Histograms, which have but one series in their native form, of their own name."""
    return {family for family, kind in documented_families().items() if kind == "histogram"}


def series_names() -> set[str]:
    """Names of the series of all documented families: a histogram has three."""
    names = set()
    for family, kind in documented_families().items():
        names |= {f"{family}{end}" for end in ("_bucket", "_sum", "_count")} if kind == "histogram" else {family}
    return names
