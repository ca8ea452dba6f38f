"""What kustomize makes of the manifests in deploy/kubernetes."""

import functools
import os
import pathlib

import yaml

from support.paths import REPOSITORY
from support.pinned import KUSTOMIZE
from support.process import run

ROOT = REPOSITORY / "deploy" / "kubernetes"


def kustomizations() -> dict[str, pathlib.Path]:
    """Directories that can be built, by their path in deploy/kubernetes; components cannot."""
    files = sorted(ROOT.rglob("kustomization.yaml"))
    return {
        str(file.parent.relative_to(ROOT)): file.parent
        for file in files
        if yaml.safe_load(file.read_text())["kind"] == "Kustomization"
    }


@functools.cache
def _rendered(directory: pathlib.Path) -> str:
    text = run([KUSTOMIZE.path(), "build", directory])
    if "# Warning" in text:
        raise RuntimeError(text[text.index("# Warning") :].splitlines()[0])
    return text


def build(directory: pathlib.Path) -> list[dict]:
    """All objects of a directory, fresh ones; raises RuntimeError with kustomize's words, also when it only warns."""
    return [thing for thing in yaml.load_all(_rendered(directory), yaml.CSafeLoader) if thing]


def combination(place: pathlib.Path, resources: list[pathlib.Path], components: list[str], **more) -> list[dict]:
    """All objects of a kustomization that a user would write, in a new directory `place`."""
    place.mkdir()

    def relative(path: pathlib.Path) -> str:
        return os.path.relpath(path, place)

    text = yaml.safe_dump({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": [relative(path) for path in resources],
        "components": [relative(ROOT / "components" / name) for name in components], **more,
    })  # fmt: skip
    (place / "kustomization.yaml").write_text(text)
    return build(place)


def one(objects: list[dict], kind: str) -> dict:
    """The one object of the kind."""
    (found,) = [thing for thing in objects if thing["kind"] == kind]
    return found
