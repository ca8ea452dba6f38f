"""What Docker makes of the Dockerfile: what is compiled anew after which change, and whether what it copies suffices."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from support.image import DOCKERFILE
from support.paths import BUILD, REPOSITORY
from support.process import run

# Directories that are no part of a checkout.
IGNORED = {"build", ".git"}


@pytest.fixture
def checkout(tmp_path) -> pathlib.Path:
    """A copy of the repository whose Dockerfile copies as ours does, but runs nothing, on an image of nothing."""
    place = tmp_path / "checkout"
    shutil.copytree(REPOSITORY, place, ignore=lambda _, names: IGNORED & set(names), symlinks=True)
    lines = re.sub(r"\\\n", "", DOCKERFILE.read_text())
    lines, count = re.subn(r"^RUN .*$", "", lines, flags=re.MULTILINE)
    assert count >= 3
    lines = lines.replace("FROM ${BASE} AS build", "FROM scratch AS build").partition("\nFROM scratch\n")[0]
    (place / "Dockerfile").write_text(lines)
    return place


def build(engine, checkout: pathlib.Path) -> str:
    """The id of the image."""
    engine.build(checkout, "copied")
    return engine.cli("images", "--quiet", "--no-trunc", "copied").strip()


DOCUMENTS = ["README.md", "exporter/METRICS.md", "exporter/LIMITS.md", "exporter/ARCHITECTURE.md", "deploy/kubernetes/base/daemonset.yaml",
             "deploy/package/tacho.service", "deploy/prometheus/runbook.md", "tests/run", "grafana/config.libsonnet",
             "config/tacho.yaml", "SECURITY.md"]  # fmt: skip


def test_a_changed_document_compiles_nothing_anew_and_a_changed_source_does(engine, checkout):
    before = build(engine, checkout)
    for name in DOCUMENTS:
        assert (checkout / name).exists(), name
        with open(checkout / name, "a") as document:
            document.write("\n")
    assert build(engine, checkout) == before
    with open(checkout / "exporter/main.cpp", "a") as source:
        source.write("\n")
    assert build(engine, checkout) != before


def compiled_from() -> set[str]:
    """The repository's files that the build under test was made of, as ninja recorded them."""
    inputs = run(["ninja", "-C", BUILD, "-t", "inputs", "tacho"]).splitlines()
    objects = {line for line in inputs if line.endswith(".o")}
    recorded = run(["ninja", "-C", BUILD, "-t", "deps"]).split("\n\n")
    for block in recorded:
        name, *files = block.splitlines() or [""]
        if name.partition(":")[0] in objects:
            inputs += [line.strip() for line in files]
    found = {pathlib.Path(os.path.normpath(BUILD / line)) for line in inputs}
    return {str(path.relative_to(REPOSITORY)) for path in found
            if path.is_relative_to(REPOSITORY) and path.relative_to(REPOSITORY).parts[0] not in ("build", "tests")}  # fmt: skip


def test_what_is_copied_is_what_is_compiled(engine, checkout, tmp_path):
    build(engine, checkout)
    engine.cli("create", "--name", "copied", "copied", "nothing")
    with subprocess.Popen(engine.command("export", "copied"), stdout=subprocess.PIPE) as exported:
        subprocess.run(["tar", "-C", tmp_path, "-x"], stdin=exported.stdout, check=True)
    assert exported.returncode == 0
    engine.cli("rm", "copied")
    source = tmp_path / "source"
    copied = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}
    needed = compiled_from()
    assert len(needed) > 200 and "exporter/main.cpp" in needed and "bpf/socket.bpf.c" in needed
    assert needed <= copied, needed - copied
    # What cmake itself reads, all of it.
    scripts = {str(path.relative_to(REPOSITORY)) for folder in ("bpf", "exporter", "deploy/package")
               for path in (REPOSITORY / folder).rglob("*") if path.name == "CMakeLists.txt" or "cmake" in path.parts}  # fmt: skip
    others = {"CMakeLists.txt", "CMakePresets.json", "LICENSE", "deploy/image/check-base", "deploy/image/collect",
              "deploy/install-deps", "deploy/package/inventory"}  # fmt: skip
    assert scripts | others <= copied | {
        name for name in scripts if (REPOSITORY / name).is_dir()
    }
    assert not [name for name in copied if name.endswith((".md", ".png"))]
