"""skips.py LIST LOG…: fails if a test was skipped for a reason that the list does not have.

A LOG is what ctest printed, and behind it its log of the same run.

A line of LIST is a regular expression, two spaces or more, and why that may be; it has to match from the beginning of
"TEST: REASON". Skips are told by pytest ("SKIPPED [1] module.py:12: reason"), by Catch2 ("skipped: reason", in a test that
passes), and by ctest ("***Skipped", where a whole program says so with a code of its own: its log says "Test Passed").
"""

import pathlib
import re
import sys

# How ctest begins and ends what it writes of a test.
TEST = re.compile(r"^\d+/\d+ Test: (\S+)$", re.MULTILINE)


def skips(log: str) -> list[str]:
    """"TEST: REASON" of each test that was skipped, in the order of the log."""
    found = []
    whole = set(re.findall(r"^ *\d+/\d+ Test +#\d+: (\S+) \.*\*\*\*Skipped", log, re.MULTILINE))
    parts = TEST.split(log)
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        reasons = re.findall(r"^SKIPPED (?:\[\d+\] \S+?: )?(.*)$", text, re.MULTILINE)
        reasons += re.findall(r"^ +skipped: (.*)$", text, re.MULTILINE)
        if not reasons and name in whole:
            said = (line for line in text.splitlines() if "skipped" in line.lower() and not line.startswith("Command: "))
            reasons = [next(said, "no reason given")]
        found += [f"{name}: {reason}" for reason in reasons]
    return found


def allowed(text: str) -> list[re.Pattern]:
    """The expressions of a list; every one has its reason."""
    patterns = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            pattern, _, why = line.partition("  ")
            if not why.strip():
                sys.exit(f"skips: no reason is given for {pattern!r}")
            patterns.append(re.compile(pattern))
    return patterns


def main(listed: str, *logs: str) -> int:
    patterns = allowed(pathlib.Path(listed).read_text())
    all_skips = [skip for log in logs for skip in skips(pathlib.Path(log).read_text(errors="replace"))]
    refused = sorted({skip for skip in all_skips if not any(pattern.match(skip) for pattern in patterns)})
    for skip in refused:
        print(f"MAY NOT BE SKIPPED {skip}")
    return bool(refused)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
