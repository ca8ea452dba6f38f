"""Rules for dashboards: those of Grafana's dashboard-linter that make sense here, and our own.

`findings(dashboard)` is empty when all is well. A finding names the panel or variable and what it lacks.
"""

import re

from support import dashboards

# A series with its selector. Names of our own recording rules have a colon and are not for dashboards.
_SERIES = re.compile(r"\b((?:tacho|process|scrape)_\w+|up)\b(?!\s*\()(\{[^}]*\})?")
_STRINGS = re.compile(r'"[^"]*"')
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring)\s*\([^)]*\)")
_RANGE = re.compile(r"\[([^\]]+)\]")
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


def findings(dashboard: dict) -> list[str]:
    return [*_dashboard(dashboard), *_variables(dashboard), *_panels(dashboard), *_layout(dashboard)]


def series_of(expr: str) -> list[tuple[str, str]]:
    """(name, selector or "") of every series in an expression."""
    plain = _GROUPING.sub("", expr)
    return [(name, selector) for name, selector in _SERIES.findall(plain) if selector or name not in _labels(plain)]


def _labels(expr: str) -> set[str]:
    """Names of labels inside selectors."""
    inside = " ".join(_STRINGS.sub("", selector) for _, selector in _SERIES.findall(expr))
    return set(re.findall(r"(\w+)\s*[=!]", inside))


def _dashboard(dashboard: dict):
    if dashboard.get("editable") is not False:
        yield "dashboard: editable is not false"
    if not re.fullmatch(r"tacho-[a-z]+", dashboard.get("uid") or ""):
        yield f"dashboard: the uid {dashboard.get('uid')!r} is not stable (tacho-NAME)"
    if dashboard.get("schemaVersion") != 39:
        yield f"dashboard: schemaVersion {dashboard.get('schemaVersion')} is not 39"
    if "id" in dashboard:
        yield "dashboard: has an id, which belongs to one Grafana"
    for key in ("title", "description", "tags"):
        if not dashboard.get(key):
            yield f"dashboard: has no {key}"


def _variables(dashboard: dict):
    found = dashboards.variables(dashboard)
    source = found.get("datasource", {})
    if (source.get("type"), source.get("query")) != ("datasource", "prometheus"):
        yield "variable datasource: is missing or not of Prometheus"
    for name in ("job", "instance"):
        variable = found.get(name)
        if variable is None:
            yield f"variable {name}: is missing"
        elif not (variable.get("multi") and variable.get("includeAll") and variable.get("allValue") == ".+"):
            yield f"variable {name}: is not multi with allValue .+"
    for name, variable in found.items():
        if not variable.get("label"):
            yield f"variable {name}: has no label"
        if variable["type"] == "query":
            if variable.get("datasource") != _DATASOURCE:
                yield f"variable {name}: its data source is not ${{datasource}}"
            if variable.get("refresh") != 2:
                yield f"variable {name}: is not refreshed when the time range changes"


def _panels(dashboard: dict):
    titles = [panel.get("title") for panel in dashboards.panels(dashboard)]
    for panel in dashboards.panels(dashboard):
        title = panel.get("title")
        place = f"panel {title or panel.get('id')!r}"
        if not title:
            yield f"{place}: has no title"
        elif titles.count(title) > 1:
            yield f"{place}: its title is there twice"
        shows, _, beware = (panel.get("description") or "").partition("**Not to be trusted**")
        if not shows.strip() or not beware.strip():
            yield f"{place}: its description lacks what it shows, or when not to trust it"
        if not panel.get("fieldConfig", {}).get("defaults", {}).get("unit"):
            yield f"{place}: has no unit"
        if not panel.get("targets"):
            yield f"{place}: has no query"
        for target in panel.get("targets", []):
            if panel.get("datasource") != _DATASOURCE or target.get("datasource") != _DATASOURCE:
                yield f"{place}: its data source is not ${{datasource}}"
            for finding in _expression(target.get("expr", "")):
                yield f"{place}, query {target.get('refId')}: {finding}"


def _expression(expr: str):
    known = dashboards.series_names() | dashboards.PROMETHEUS_FAMILIES | set(dashboards.PLANNED_FAMILIES)
    series = series_of(expr)
    if not series:
        yield "asks for no series"
    for name, selector in series:
        native = name in dashboards.native_names() and "histogram_quantile(" in expr
        if name not in known and not native:
            yield f"{name} is not exported (exporter/METRICS.md)"
        for label in ("job", "instance"):
            if f'{label}=~"${label}"' not in selector:
                yield f'{name} is not restricted to {label}=~"${label}"'
    for duration in _RANGE.findall(_STRINGS.sub("", expr)):
        if duration != "$__rate_interval":
            yield f"[{duration}] is not [$__rate_interval]"


def _layout(dashboard: dict):
    ids = [panel["id"] for panel in dashboard["panels"]]
    if len(set(ids)) != len(ids):
        yield "dashboard: ids of panels are there twice"
    taken: dict[tuple[int, int], str] = {}
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        if at["x"] + at["w"] > 24:
            yield f"panel {panel['title']!r}: is wider than the grid"
        for cell in ((x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])):
            if cell in taken:
                yield f"panel {panel['title']!r}: covers {taken[cell]!r}"
                break
            taken[cell] = panel["title"]
