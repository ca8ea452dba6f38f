"""The chart, rendered by helm if there is one, and by what stands in for it here.

No package of Debian's has helm, and to build it takes minutes: `render` knows the part of the template language that the
chart uses, and refuses everything else.
"""

import hashlib
import json
import pathlib
import re
import shutil
from collections.abc import Mapping

import jsonschema
import yaml

from support.paths import REPOSITORY
from support.process import run

CHART = REPOSITORY / "deploy" / "helm" / "tacho"
_ACTION = re.compile(r"\{\{(-?)\s*(.*?)\s*(-?)\}\}", re.DOTALL)


def program() -> str | None:
    return shutil.which("helm")


def merged(values: Mapping, changes: Mapping) -> dict:
    """As helm lays a user's values over the chart's."""
    result = dict(values)
    for key, value in changes.items():
        nested = isinstance(value, Mapping) and isinstance(values.get(key), Mapping)
        result[key] = merged(values[key], value) if nested else value
    return result


class _Renderer:
    def __init__(self, namespace: str, values: dict):
        chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
        self.root = {"Values": values, "Release": {"Namespace": namespace}, "Chart": {"AppVersion": chart["appVersion"]}}

    def file(self, name: str) -> str:
        return self.text((CHART / "templates" / name).read_text())

    def text(self, template: str) -> str:
        """Actions with a minus take the white space on that side with them."""
        parts, position = [], 0
        for match in _ACTION.finditer(template):
            before = template[position : match.start()]
            parts.append(before.rstrip() if match[1] else before)
            parts.append(match)
            position = match.end()
            if match[3]:
                position += len(template[position:]) - len(template[position:].lstrip())
        parts.append(template[position:])
        out: list[str] = []
        shown = [(True, True)]  # of each `if` we are in: whether this branch is shown, whether one was
        for part in parts:
            if isinstance(part, str):
                out.append(part if all(on for on, _ in shown) else "")
                continue
            word, _, rest = part[2].partition(" ")
            if word == "if":
                on = bool(self.value(rest))
                shown.append((on, on))
            elif word == "else":
                _, done = shown.pop()
                on = not done and (not rest or bool(self.value(rest.removeprefix("if "))))
                shown.append((on, done or on))
            elif word == "end":
                shown.pop()
            elif all(on for on, _ in shown):
                value = self.value(part[2])
                out.append({True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value))
        if len(shown) != 1:
            raise ValueError("if without end, or end without if")
        return "".join(out)

    def value(self, pipeline: str):
        first, *rest = [step.strip() for step in pipeline.split("|")]
        value = self._term(first)
        for step in rest:
            name, *arguments = step.split()
            value = self._apply(name, arguments, value)
        return value

    def _term(self, text: str):
        if text.startswith("not "):
            return not self._term(text.removeprefix("not "))
        if match := re.fullmatch(r'\.Files\.Get "([^"]+)"', text):
            return (CHART / match[1]).read_text()
        if match := re.fullmatch(r'include \(print \$\.Template\.BasePath "/([^"]+)"\) \.', text):
            return self.file(match[1])
        if match := re.fullmatch(r'"([^"]*)"', text):
            return match[1]
        if not re.fullmatch(r"(\.\w+)+", text):
            raise ValueError(f"not understood: {text}")
        value = self.root
        for key in text[1:].split("."):
            value = value[key]
        return value

    def _apply(self, name: str, arguments: list[str], value):
        match name, arguments:
            case "toYaml", []:
                return yaml.safe_dump(value, default_flow_style=not value).rstrip("\n")
            case "indent", [width]:
                return "\n".join(" " * int(width) + line for line in str(value).split("\n"))
            case "default", [other]:
                return value or self._term(other)
            case "sha256sum", []:
                return hashlib.sha256(value.encode()).hexdigest()
        raise ValueError(f"not understood: | {name} {' '.join(arguments)}")


def render(values: Mapping, namespace: str = "tacho") -> list[dict]:
    """All objects of the chart, by what stands in for helm."""
    all_values = merged(yaml.safe_load((CHART / "values.yaml").read_text()), values)
    jsonschema.Draft7Validator(json.loads((CHART / "values.schema.json").read_text())).validate(all_values)
    renderer = _Renderer(namespace, all_values)
    objects: list[dict] = []
    for file in sorted((CHART / "templates").glob("*.yaml")):
        objects += [thing for thing in yaml.safe_load_all(renderer.file(file.name)) if thing]
    return objects


def template(place: pathlib.Path, values: Mapping, namespace: str = "tacho") -> list[dict]:
    """The same by helm; `place` is a file that is not there yet."""
    place.write_text(yaml.safe_dump(dict(values)))
    text = run([program(), "template", "tacho", CHART, "--namespace", namespace, "--values", place,
                "--kube-version", "1.29.0"])  # fmt: skip  # a helm that one has built takes 1.20
    text = re.sub(r"(?m)^walk\.go:.*\n", "", text)  # says of every link that it is one
    return [thing for thing in yaml.safe_load_all(text) if thing]
