"""The dashboards are of the type that Grafana publishes: @grafana/schema, checked by TypeScript.

Needs npm and, the first time in a build directory, a package registry; says so where they are missing.
"""

import json
import pathlib

import pytest

from support import dashboards, npm
from support.paths import BUILD

HERE = pathlib.Path(__file__).resolve().parent
WORKSHOP = BUILD / "tests" / "unit" / "dashboards"

# JSON has no enumerations: a field of such a type takes the text of its values.
CHECK = """
import type {{ Dashboard }} from '@grafana/schema';

type Plain<T> = T extends string ? `${{T}}`
  : T extends number | boolean | null | undefined ? T
  : T extends (infer Item)[] ? Plain<Item>[]
  : T extends object ? {{ [Key in keyof T]: Plain<T[Key]> }}
  : T;

export const dashboard = {dashboard} satisfies Plain<Dashboard>;
"""
# A panel's options and its own part of the fields' configuration are free in Dashboard, and typed by kind of panel.
PANEL = """
import type * as Panel{id} from '@grafana/schema/dist/esm/raw/composable/{folder}/{kind_name}PanelCfg_types.gen.js';
export const options{id} = {options} satisfies Plain<Panel{id}.Options>;
"""
FIELDS = "export const fields{id} = {custom} satisfies Plain<Partial<Panel{id}.FieldConfig>>;\n"
KINDS = {"timeseries": "TimeSeries", "stat": "Stat", "table": "Table", "heatmap": "Heatmap",
         "state-timeline": "StateTimeline"}  # fmt: skip


@pytest.fixture(scope="module")
def workshop() -> pathlib.Path:
    """A directory with the compiler and Grafana's types."""
    try:
        npm.install(HERE, WORKSHOP)
    except npm.Unavailable as error:
        pytest.skip(f"the dashboards' types are not checked: {error}")
    return WORKSHOP


def checked(panel: dict) -> str:
    """TypeScript that checks what is of the panel's kind."""
    kind = KINDS[panel["type"]]
    names = {"id": panel["id"], "folder": f"{kind.lower()}/panelcfg/x", "kind_name": kind}
    custom = panel["fieldConfig"]["defaults"].get("custom")
    fields = FIELDS.format(custom=json.dumps(custom), **names) if custom else ""
    return PANEL.format(options=json.dumps(panel["options"]), **names) + fields


def complaints(workshop: pathlib.Path, name: str, dashboard: dict) -> str:
    """What TypeScript says about a dashboard; empty when it is of the type."""
    file = workshop / f"{name}.ts"
    typed = "".join(map(checked, dashboards.panels(dashboard)))
    file.write_text(CHECK.format(dashboard=json.dumps(dashboard, indent=2)) + typed)
    return npm.typescript(workshop, file.name)


@pytest.mark.parametrize("name", dashboards.dashboards())
def test_dashboard_is_of_grafanas_type(workshop, name):
    assert complaints(workshop, name, dashboards.dashboards()[name]) == ""


def test_wrong_fields_and_values_are_found(workshop):
    dashboard = dashboards.dashboards()["tacho-health"]
    panel = next(dashboards.panels(dashboard))
    panel["gridPosition"] = panel["gridPos"]
    dashboard["templating"]["list"][0]["hide"] = "never"
    panel["options"]["graphMode"] = "curve"
    found = complaints(workshop, "spoiled", dashboard)
    for word in ("gridPosition", "VariableHide", "curve"):
        assert word in found, f"{word} is not found in:\n{found}"
