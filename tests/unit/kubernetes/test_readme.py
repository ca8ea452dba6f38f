"""README's commands for Kubernetes, as far as kubectl goes without an API server, and the chart's."""

import re
import shlex

import pytest
import yaml

from support import helm, kustomize
from support.paths import REPOSITORY
from support.pinned import KUBECTL, Unavailable
from support.process import run
from support.readme import README, commands

IMAGE = "registry.example/tacho:1"


@pytest.fixture(scope="module")
def kubectl():
    """kubectl(*words) gives its output."""
    try:
        program = KUBECTL.path()
    except Unavailable as error:
        pytest.skip(f"README's commands are not tried: {error}")
    return lambda *words: run([program, *words])


def applied() -> list[str]:
    """Every directory that README or a document beside the manifests says to apply, of the repository."""
    texts = [README.read_text(), *(path.read_text() for path in sorted(kustomize.ROOT.rglob("*.md")))]
    return sorted({name for text in texts for name in re.findall(r"kubectl apply -k ([\w/.-]+)", text)})


def typed(*beginning: str) -> list[str]:
    """The one command in README's section that begins so."""
    (words,) = [words for line in commands("In Kubernetes") if (words := shlex.split(line, comments=True))[: len(beginning)] == [*beginning]]
    return words


def test_kubectl_builds_what_is_to_be_applied_as_kustomize_does(kubectl):
    assert "deploy/kubernetes/base" in applied()
    for name in applied():
        objects = [thing for thing in yaml.safe_load_all(kubectl("kustomize", REPOSITORY / name)) if thing]
        assert objects == kustomize.build(REPOSITORY / name), name


def test_the_image_is_set_in_what_was_applied(kubectl, tmp_path):
    (*words, where, image) = typed("kubectl", "-n")
    assert words == ["kubectl", "-n", "tacho", "set", "image"]
    container, _, reference = image.partition("=")
    assert reference == "REGISTRY/tacho:TAG"
    kind, _, name = where.partition("/")
    directory = REPOSITORY / typed("kubectl", "apply")[-1]
    objects = [thing for thing in kustomize.build(directory) if (thing["kind"].lower(), thing["metadata"]["name"]) == (kind, name)]
    assert [thing["metadata"]["namespace"] for thing in objects] == ["tacho"]
    (tmp_path / "objects.yaml").write_text(yaml.safe_dump_all(objects))
    changed = kubectl("set", "image", "--local", "-f", tmp_path / "objects.yaml", f"{container}={IMAGE}", "--output=yaml")
    (pod,) = [thing["spec"]["template"]["spec"] for thing in yaml.safe_load_all(changed)]
    assert [one["image"] for one in pod["containers"]] == [IMAGE]


def test_the_chart_takes_the_values_that_are_typed():
    (line,) = re.findall(r"`(helm install [^`]+)`", README.read_text())
    name, chart, *options = shlex.split(line)[2:]
    assert (name, REPOSITORY / chart) == ("tacho", helm.CHART)
    assert options == ["--namespace", "tacho", "--create-namespace", "--set", "image.repository=REGISTRY/tacho"]
    objects = helm.render({"image": {"repository": "REGISTRY/tacho"}})
    (container,) = kustomize.one(objects, "DaemonSet")["spec"]["template"]["spec"]["containers"]
    assert container["image"].startswith("REGISTRY/tacho:")
