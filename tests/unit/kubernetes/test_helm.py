"""The Helm chart renders what kustomize renders, by helm itself where there is one (see support/helm.py)."""

import json
import re

import pytest
import yaml

from support import helm, kustomize
from support.pinned import KUSTOMIZE, Unavailable
from support.process import run

OPERATOR = {"podMonitor": {"enabled": True}, "rules": {"enabled": True}, "dashboards": {"enabled": True}}
SAME = {
    "base": {},
    "overlays/prometheus-operator": OPERATOR,
    "overlays/annotations": {"scrapeAnnotations": True},
    "overlays/restricted-node": {"restrictedNode": True},
    "overlays/localhost-seccomp": {"localhostSeccomp": True},
    "examples/combined": {**OPERATOR, "restrictedNode": True, "image": {"repository": "registry.example.org/tacho"}},
}


def renderers():
    by_helm = pytest.mark.skipif(helm.program() is None, reason="no helm on the PATH: only its stand-in renders the chart")
    return [pytest.param(False, id="stand-in"), pytest.param(True, id="helm", marks=by_helm)]


@pytest.fixture(params=renderers())
def rendered(request, tmp_path):
    """rendered({values}) gives the objects."""
    if request.param:
        return lambda values, **more: helm.template(tmp_path / "values.yaml", values, **more)
    return helm.render


@pytest.fixture(scope="module", autouse=True)
def tool():
    try:
        KUSTOMIZE.path()
    except Unavailable as error:
        pytest.skip(f"there is nothing to compare the chart with: {error}")


def comparable(objects: list[dict]) -> list[str]:
    """Without how each tool has pods follow a changed configuration: a name with a hash, an annotation."""
    text = re.sub(r'"tacho-[a-z0-9]{10}"', '"tacho"', json.dumps(objects, sort_keys=True))
    found = json.loads(text)
    for thing in found:
        template = thing.get("spec", {}).get("template", {"metadata": {}})
        template["metadata"].get("annotations", {}).pop("checksum/config", None)
        for file, content in (thing.get("data") or {}).items():
            thing["data"][file] = content.rstrip("\n")
    return sorted(json.dumps(thing, sort_keys=True, indent=1) for thing in found)


@pytest.mark.parametrize("name", SAME)
def test_chart_is_what_kustomize_renders(rendered, name):
    wanted = comparable(kustomize.build(kustomize.kustomizations()[name]))
    found = comparable(rendered({**SAME[name], "namespace": {"create": True}}))
    assert found == wanted


def test_every_component_of_nodes_is_a_value():
    components = {file.parent.name for file in (kustomize.ROOT / "components").glob("*/kustomization.yaml")}
    assert {name for name in components if not name.startswith("sidecar")} == {
        name.removeprefix("overlays/") for name in SAME if name.startswith("overlays/")
    }


def test_a_changed_configuration_replaces_the_pods(rendered):
    def checksum(values) -> str:
        template = kustomize.one(rendered(values), "DaemonSet")["spec"]["template"]
        return template["metadata"]["annotations"]["checksum/config"]

    assert checksum({}) == checksum({"scrapeAnnotations": True}) != checksum({"config": "window: 5s"})
    maps = [thing for thing in rendered({"config": "window: 5s\n"}) if thing["kind"] == "ConfigMap"]
    assert yaml.safe_load(maps[0]["data"]["tacho.yaml"]) == {"window": "5s"}


def test_values_change_what_they_say(rendered):
    objects = rendered(
        {
            "image": {"tag": "9", "pullPolicy": "Always"}, "imagePullSecrets": [{"name": "registry"}],
            "priorityClassName": "high", "networkPolicy": {"enabled": False}, "nodeSelector": {"disk": "ssd"},
            "tolerations": [], "affinity": {"nodeAffinity": {}}, "resources": {"limits": {"memory": "1Gi"}},
        },
        namespace="elsewhere",
    )  # fmt: skip
    kinds = {thing["kind"] for thing in objects}
    assert kinds == {"DaemonSet", "ConfigMap", "ServiceAccount"}, "no namespace, class or policy of its own"
    assert {thing["metadata"]["namespace"] for thing in objects} == {"elsewhere"}
    pod = kustomize.one(objects, "DaemonSet")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert (container["image"], container["imagePullPolicy"]) == ("tacho:9", "Always")
    assert pod["imagePullSecrets"] == [{"name": "registry"}] and pod["priorityClassName"] == "high"
    assert pod["nodeSelector"]["disk"] == "ssd" and pod["tolerations"] == [] and "nodeAffinity" in pod["affinity"]
    assert container["resources"]["limits"] == {"memory": "1Gi"}
    monitor = kustomize.one(rendered({"podMonitor": {"enabled": True, "interval": "5s"}}), "PodMonitor")
    assert monitor["spec"]["podMetricsEndpoints"][0]["interval"] == "5s"


@pytest.mark.parametrize(
    "config",
    [" # a comment that is indented\nwindow: 5s\n", "\n\nwindow: 5s", "window: 5s\r\ndiscovery: {listeners: never}\r\n", "  window: 5s\n", "window: 5s # {{ x }}\n\n\n"],
    ids=repr,
)  # fmt: skip
def test_a_configuration_is_passed_on_as_it_is(rendered, config):
    (found,) = [thing for thing in rendered({"config": config}) if thing["kind"] == "ConfigMap"]
    assert yaml.safe_load(found["data"]["tacho.yaml"]) == yaml.safe_load(config)


WRONG = {
    "tolerationz": {"tolerationz": []},
    "enable": {"podMonitor": {"enable": True}},
    "tagg": {"image": {"tagg": "1"}},
    "tag": {"image": {"tag": 1.10}},
    "interval": {"podMonitor": {"interval": 15}},
    "config": {"config": {"window": "5s"}},
    "from": {"networkPolicy": {"from": []}},
    "restrictedNode": {"restrictedNode": "no"},
    "imagePullSecrets": {"imagePullSecrets": ["registry"]},
    "tolerations": {"tolerations": {"operator": "Exists"}},
    "nodeSelector": {"nodeSelector": {"disk": True}},
}


@pytest.mark.parametrize("place", WRONG)
def test_values_that_would_do_nothing_or_something_else_are_refused(rendered, place):
    """A misspelt one; a number that YAML has shortened; an empty list, by which Kubernetes admits everybody."""
    with pytest.raises(Exception, match=place):
        rendered(WRONG[place])


def test_who_is_a_part_of_another_chart_has_what_that_shares(rendered):
    assert rendered({"global": {"imageRegistry": "registry.example.org"}, "networkPolicy": {"enabled": False}})


def test_every_value_is_used_and_explained():
    templates = "".join(file.read_text() for file in (helm.CHART / "templates").iterdir())
    text = (helm.CHART / "values.yaml").read_text()
    for name in yaml.safe_load(text):
        assert f".Values.{name}" in templates, f"{name} does nothing"
        before = text[: text.index(f"\n{name}:") + 1].rstrip("\n").splitlines()
        assert before[-1].startswith("#") or name in {"image", "nodeSelector", "tolerations", "affinity", "rules"}, name


@pytest.mark.parametrize(
    "broken",
    ["{{ .Values.image.repo", "{{ if .Values.config }}", "{{ .Values.config | b64enc }}", "{{ range .Values.x }}"],
)
def test_stand_in_refuses_what_it_does_not_know(tmp_path, monkeypatch, broken):
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "x.yaml").write_text(f"a: {broken}\n")
    for file in ("Chart.yaml", "values.yaml", "values.schema.json"):
        (tmp_path / file).write_text((helm.CHART / file).read_text())
    monkeypatch.setattr(helm, "CHART", tmp_path)
    with pytest.raises((ValueError, KeyError, yaml.YAMLError)):
        helm.render({})


@pytest.mark.skipif(helm.program() is None, reason="no helm on the PATH: the chart is not linted")
def test_helm_finds_no_fault():
    assert "1 chart(s) linted, 0 chart(s) failed" in run([helm.program(), "lint", "--strict", helm.CHART])
