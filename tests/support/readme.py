"""What README says to type."""

import re

from support.paths import REPOSITORY

README = REPOSITORY / "README.md"


def _section(heading: str, text: str | None) -> str:
    text = README.read_text() if text is None else text
    section = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL)
    if section is None:
        raise ValueError(f"README has no section {heading!r}")
    return section[1]


def sentences(heading: str, text: str | None = None) -> list[str]:
    """The section's list, sentence by sentence, without emphasis. A sentence may run over the items of a list within an item."""
    found = []
    items = re.sub(r"^ +- ", "  ", _section(heading, text), flags=re.MULTILINE)
    for item in re.split(r"^- ", items, flags=re.MULTILINE)[1:]:
        found += re.split(r"(?<=\.) (?=[A-Z`\[])", " ".join(item.replace("**", "").split()))
    return found


def commands(heading: str, text: str | None = None) -> list[str]:
    """The commands of the section's console blocks, without their prompt; lines that end in a backslash are joined."""
    found = []
    for block in re.findall(r"^```console$(.*?)^```$", _section(heading, text), re.MULTILINE | re.DOTALL):
        found += [line[2:] for line in block.replace("\\\n", "").splitlines() if line.startswith("$ ")]
    if not found:
        raise ValueError(f"README, {heading!r}: there is no command")
    return found
