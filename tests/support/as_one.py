"""One source of several, for the compiler: most of its time goes into what a source includes.

    as_one.py OUTPUT FILE…

writes it; an OUTPUT that has the text already is not touched. tests/kernel is compiled so, tests/support/lint/tidy.py checks tests so.
"""

import itertools
import pathlib
import re
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("exporter", "tests")
NAMESPACE = re.compile(r"^namespace ([\w:]+) \{", re.MULTILINE)


def include(file: pathlib.Path) -> str:
    """By where it is in the repository, and not by the machine's path: ccache knows the text of another checkout again."""
    return f'#include "{file.resolve().relative_to(REPOSITORY)}"'


def as_one(files: list[pathlib.Path]) -> str:
    """The text of a source that has these in it. A test or a program gets a namespace of its own, in which the project's
    namespaces are what they are without it. What it includes comes first; it includes it again, which its guard leaves out.
    What others declare in headers is defined where it was declared."""
    headers = [path for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*.h")]
    known = {name for path in headers for name in NAMESPACE.findall(path.read_text())}
    included: dict[str, None] = {}
    lines = []
    for number, file in enumerate(files):
        text = file.read_text()
        if file.stem.endswith("_test") or re.search(r"^int main\(", text, re.MULTILINE):
            for line, name in re.findall(r'^(#include "?([^"\n]*)"?.*)$', text, re.MULTILINE):
                beside = file.parent / name
                included[include(beside) if beside.exists() else line] = None
            opened = set(NAMESPACE.findall(text))
            within = {name for name in known if any(name.startswith(f"{outer}::") for outer in opened)}
            around = {outer for name in opened for outer in itertools.accumulate(name.split("::"), "{}::{}".format)}
            lines.append(f"namespace source_{number} {{")
            lines += [f"namespace {name} {{ using namespace ::{name}; }}" for name in sorted(within | around)]
            lines += [include(file), "}"]
        else:
            lines.append(include(file))
    return "\n".join([*included, *(f"namespace {name} {{}}" for name in sorted(known)), *lines]) + "\n"


def write(output: pathlib.Path, files: list[pathlib.Path]) -> None:
    text = as_one(files)
    if not output.exists() or output.read_text() != text:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text)


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]), [pathlib.Path(name) for name in sys.argv[2:]])
