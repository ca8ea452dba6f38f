"""The table of the end-to-end run: server, client, what the client counted, what tacho counted, sends.

Rows go to a file, since every test module is a process of its own; `python3 -m support.ledger FILE` prints it.
"""

import json
import os
import pathlib
import sys

from support import paths

HEADINGS = ("server", "client", "client counted", "tacho counted", "sends")


def default_file() -> pathlib.Path:
    return pathlib.Path(os.environ.get("TACHO_LEDGER", paths.BUILD / "tests" / "e2e" / "ledger.jsonl"))


def record(server: str, client: str, expected: str, requests: int, sends: int) -> None:
    """Adds one row."""
    _append([server, client, expected, requests, sends])


def note(text: str) -> None:
    """Adds a line that stands below the table."""
    _append(text)


def _append(entry: list | str) -> None:
    file = default_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "a") as rows:
        rows.write(json.dumps(entry) + "\n")


def load(file: pathlib.Path) -> list[list | str]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def table(rows: list[list]) -> str:
    """Left-aligned texts, right-aligned numbers; empty without rows."""
    if not rows:
        return ""
    cells = [list(HEADINGS), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(HEADINGS))]
    lines = []
    for row in cells:
        aligned = [
            cell.rjust(width) if column >= 3 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ]
        lines.append("  ".join(aligned).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


if __name__ == "__main__":
    everything = load(pathlib.Path(sys.argv[1]))
    print(table([row for row in everything if isinstance(row, list)]))
    print("\n".join(line for line in everything if isinstance(line, str)))
