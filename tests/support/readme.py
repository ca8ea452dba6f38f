"""What README says to type."""

import re

from support.paths import REPOSITORY

README = REPOSITORY / "README.md"


def commands(heading: str, text: str | None = None) -> list[str]:
    """The commands of the section's console blocks, without their prompt; lines that end in a backslash are joined."""
    text = README.read_text() if text is None else text
    section = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL)
    if section is None:
        raise ValueError(f"README has no section {heading!r}")
    found = []
    for block in re.findall(r"^```console$(.*?)^```$", section[1], re.MULTILINE | re.DOTALL):
        found += [line[2:] for line in block.replace("\\\n", "").splitlines() if line.startswith("$ ")]
    if not found:
        raise ValueError(f"README, {heading!r}: there is no command")
    return found
