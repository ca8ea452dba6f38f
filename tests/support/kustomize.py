"""What kustomize makes of the manifests in deploy/kubernetes."""

import functools
import os
import pathlib
import platform
import shutil

import yaml

from support.paths import BUILD, REPOSITORY
from support.process import Process, run

ROOT = REPOSITORY / "deploy" / "kubernetes"
# Debian 12 has none: trixie's, which runs there. Checked against the hash.
POOL = "pool/main/k/kustomize"
PACKAGE = "kustomize_5.6.0+ds-1+b2_amd64.deb"
SHA256 = "552bbe5563b522685b10f75a9a226bfbee9778fc313b205d595fdbb7e9c70e33"


class Unavailable(Exception):
    """There is no kustomize; the message says why."""


@functools.cache
def program() -> str:
    """kustomize of the PATH, or Debian's, brought into the build directory once."""
    if found := shutil.which("kustomize"):
        return found
    place = BUILD / "kustomize" / "usr" / "bin" / "kustomize"
    if not os.access(place, os.X_OK):
        if platform.machine() != "x86_64":
            raise Unavailable(f"no kustomize on the PATH, and none is pinned for {platform.machine()}")
        fetch = Process([REPOSITORY / "exporter/cmake/fetch-debian", POOL, BUILD / "downloads", f"{PACKAGE}={SHA256}"])
        if fetch.wait(timeout=120) != 0:
            raise Unavailable(f"no kustomize on the PATH, and Debian's cannot be fetched: {fetch.output.splitlines()[-1]}")
        run(["dpkg", "-x", BUILD / "downloads" / PACKAGE, BUILD / "kustomize"])
    return str(place)


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
    text = run([program(), "build", directory])
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
