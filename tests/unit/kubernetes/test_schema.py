"""Every object that kustomize renders is of its kind's type and has no field that the kind has not.

The types are those of npm's kubernetes-models, made from the schemas of Kubernetes, the Prometheus operator and KEDA:
TypeScript finds unknown fields, the models' own validation formats, patterns and ranges.
"""

import copy
import json
import pathlib
import re

import pytest

from support import kustomize, npm
from support.paths import BUILD
from support.pinned import KUSTOMIZE, Unavailable
from support.process import run

HERE = pathlib.Path(__file__).resolve().parent
WORKSHOP = BUILD / "tests" / "unit" / "kubernetes"
MODULES = {
    "monitoring.coreos.com": "@kubernetes-models/prometheus-operator/monitoring.coreos.com",
    "keda.sh": "@kubernetes-models/keda/keda.sh",
}
OBJECT = "import type {{ I{kind} as Kind{number} }} from '{module}';\nexport const object{number} = {json} satisfies Kind{number};\n"
VALIDATE = """
try {{ new (require('{module}').{kind})({json}).validate(); }}
catch (error) {{ console.log(JSON.stringify([{name}, error.message])); }}
"""


def module(thing: dict) -> str:
    """Where the kind's model is."""
    group, _, version = thing["apiVersion"].rpartition("/")
    folder = MODULES.get(group, "/".join(filter(None, ["kubernetes-models", group])))
    return f"{folder}/{version}/{thing['kind']}"


@pytest.fixture(scope="module")
def workshop() -> pathlib.Path:
    try:
        npm.install(HERE, WORKSHOP)
        KUSTOMIZE.path()
    except (npm.Unavailable, Unavailable) as error:
        pytest.skip(f"the manifests' types are not checked: {error}")
    return WORKSHOP


def spoil(objects: list[dict], kind: str, path: list, value) -> list[dict]:
    """A copy with one field of one object changed."""
    spoiled = copy.deepcopy(objects)
    place = kustomize.one(spoiled, kind)
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return spoiled


SPOILED = [
    ("base", "DaemonSet", ["spec", "template", "spec", "hostNetworking"], True, "hostNetworking"),
    ("base", "DaemonSet", ["spec", "template", "spec", "containers", 0, "image"], 5, "number"),
    ("base", "NetworkPolicy", ["spec", "egres"], ["x"], "egres"),
    ("base", "DaemonSet", ["spec", "updateStrategy", "type"], "Slowly", "Slowly"),
    ("overlays/prometheus-operator", "PodMonitor", ["spec", "podMetricsEndpoints", 0, "honourLabels"], True, "honourLabels"),
    ("autoscaling/hpa", "HorizontalPodAutoscaler", ["spec", "metrics", 0, "pods", "target", "averageValue"], "x", "averageValue"),
    ("autoscaling/keda", "ScaledObject", ["spec", "triggers", 0, "metadata", "threshold"], 0.7, "threshold"),
]  # fmt: skip


@pytest.fixture(scope="module")
def complaints(workshop) -> dict[str, str]:
    """What both judges say of every kustomization, and of the spoiled ones by their number; asked once."""
    rendered = {name: kustomize.build(place) for name, place in kustomize.kustomizations().items()}
    for number, (name, kind, path, value, _) in enumerate(SPOILED):
        rendered[f"spoiled-{number}"] = spoil(rendered[name], kind, path, value)
    files, calls = {}, []
    for name, objects in rendered.items():
        file = f"{name.replace('/', '-')}.ts"
        parts = [
            {"kind": thing["kind"], "number": number, "module": module(thing), "json": json.dumps(thing, indent=1)}
            for number, thing in enumerate(objects)
        ]
        (workshop / file).write_text("".join(OBJECT.format(**part) for part in parts))
        calls += [VALIDATE.format(name=json.dumps(name), **part) for part in parts]
        files[file] = name
    said = {name: "" for name in rendered}
    for complaint in re.split(r"(?m)^(?=[\w-]+\.ts\()", npm.typescript(workshop, *files)):
        if complaint:
            said[files[complaint.partition("(")[0]]] += complaint
    (workshop / "validate.js").write_text("".join(calls))
    for line in run(["node", workshop / "validate.js"]).splitlines():
        name, complaint = json.loads(line)
        said[name] += complaint
    return said


@pytest.mark.parametrize("name", kustomize.kustomizations())
def test_objects_are_of_their_kinds(complaints, name):
    assert complaints[name] == ""


@pytest.mark.parametrize("number", range(len(SPOILED)))
def test_wrong_fields_and_values_are_found(complaints, number):
    assert SPOILED[number][-1] in complaints[f"spoiled-{number}"]
