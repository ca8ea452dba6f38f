"""The dashboards are of the type that Grafana publishes: @grafana/schema, checked by TypeScript.

Needs npm and, the first time in a build directory, a package registry; says so where they are missing.
"""

import json
import pathlib
import shutil

import pytest

from support import dashboards
from support.paths import BUILD
from support.process import Process

HERE = pathlib.Path(__file__).resolve().parent
WORKSHOP = BUILD / "tests" / "unit" / "dashboards"
# What npm says when there is no registry to ask; anything else is a failure.
UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "ERR_SOCKET_TIMEOUT")

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
def compiler() -> list[str]:
    """The command that checks *.ts in its directory."""
    if shutil.which("npm") is None:
        pytest.skip("the dashboards' types are not checked: there is no npm")
    WORKSHOP.mkdir(parents=True, exist_ok=True)
    lock = (HERE / "package-lock.json").read_text()
    stamp = WORKSHOP / "installed-lock.json"
    if not stamp.exists() or stamp.read_text() != lock:
        stamp.unlink(missing_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, WORKSHOP)
        npm = Process(
            ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=30000"],
            cwd=WORKSHOP,
        )
        if npm.wait(timeout=400) != 0:
            for code in UNREACHABLE:
                if code in npm.output:
                    pytest.skip(f"the dashboards' types are not checked: npm cannot reach a registry ({code})")
            raise RuntimeError(f"npm ci failed:\n{npm.output}")
        stamp.write_text(lock)
    return ["node", "node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--target", "es2022",
            "--module", "nodenext", "--pretty", "false"]  # fmt: skip


def checked(panel: dict) -> str:
    """TypeScript that checks what is of the panel's kind."""
    kind = KINDS[panel["type"]]
    names = {"id": panel["id"], "folder": f"{kind.lower()}/panelcfg/x", "kind_name": kind}
    custom = panel["fieldConfig"]["defaults"].get("custom")
    fields = FIELDS.format(custom=json.dumps(custom), **names) if custom else ""
    return PANEL.format(options=json.dumps(panel["options"]), **names) + fields


def complaints(compiler: list[str], name: str, dashboard: dict) -> str:
    """What TypeScript says about a dashboard; empty when it is of the type."""
    file = WORKSHOP / f"{name}.ts"
    typed = "".join(map(checked, dashboards.panels(dashboard)))
    file.write_text(CHECK.format(dashboard=json.dumps(dashboard, indent=2)) + typed)
    check = Process([*compiler, file.name], cwd=WORKSHOP)
    status = check.wait(timeout=400)
    assert (status == 0) == (check.output == ""), check.output
    return check.output


@pytest.mark.parametrize("name", dashboards.dashboards())
def test_dashboard_is_of_grafanas_type(compiler, name):
    assert complaints(compiler, name, dashboards.dashboards()[name]) == ""


def test_wrong_fields_and_values_are_found(compiler):
    dashboard = dashboards.dashboards()["tacho-health"]
    panel = next(dashboards.panels(dashboard))
    panel["gridPosition"] = panel["gridPos"]
    dashboard["templating"]["list"][0]["hide"] = "never"
    panel["options"]["graphMode"] = "curve"
    found = complaints(compiler, "spoiled", dashboard)
    for word in ("gridPosition", "VariableHide", "curve"):
        assert word in found, f"{word} is not found in:\n{found}"
