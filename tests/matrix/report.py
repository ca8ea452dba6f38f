"""From what guests said to the table."""

import re
from dataclasses import dataclass, field

from matrix.emulator import Boot
from matrix.rows import SERVICE_STEPS, Row


@dataclass
class Cell:
    """One step of one row."""

    step: str
    good: bool
    text: str  # in the table
    detail: str = ""  # below it, when it is not good
    programs: dict[str, int] = field(default_factory=dict)  # instructions that the verifier processed, of "plan"


def judge(row: Row, outcome: Boot, attempt: int) -> list[Cell]:
    """A cell for every step that the row must bring, whether it came or not."""
    cells = []
    for step in row.steps:
        if step not in outcome.results:
            detail = "\n".join(outcome.console[-30:])
            cells.append(Cell(step, False, "missing", f"the guest did not get so far:\n{detail}"))
        elif step == "plan":
            cells.append(judge_plan(row, outcome))
        elif step == "kernel":
            cells.append(judge_kernel(outcome))
        else:
            good = outcome.results[step] == 0
            cells.append(Cell(step, good, "ok" if good else "wrong", "\n".join(outcome.lines.get("log", []))))
    if attempt > 1:
        for cell in cells:
            cell.text += "²" if cell.step == "kernel" else ""
    if not outcome.complete:
        cells.append(Cell("end", False, "did not end", "\n".join(outcome.console[-30:])))
    return cells


def judge_plan(row: Row, outcome: Boot) -> Cell:
    """Is the method that must be in use in use, and is every hook attached?"""
    lines = outcome.lines.get("plan", [])
    hooks = dict(re.findall(r"^  (\w+\.\w+): (\w+)", "\n".join(lines), re.MULTILINE))
    programs = {name: int(count) for name, count in re.findall(r"^  (\w+): (\d+) instructions", "\n".join(lines), re.MULTILINE)}
    used = {hooks.get("socket.send"), hooks.get("socket.receive")}
    state = hooks.get("socket.state")
    # What is older than tacho is found by iterators, which kernels without types do not take; what processes run, in /proc.
    by_iterator = () if row.types else (".older_", ".own_", ".executables")
    missing = {name for name, method in hooks.items() if method == "none" and not any(part in name for part in by_iterator)}
    good = used == {row.uses} and state == row.state and not missing and outcome.results["plan"] == 0
    text = " ".join(sorted(str(method) for method in used)) + f" / {hooks.get('poll.poll')}, {state}"
    return Cell("plan", good, text, "\n".join(lines), programs)


def judge_kernel(outcome: Boot) -> Cell:
    """Catch's report on the console: a summary, and a block for each failure; the lines with durations are for people."""
    report = "\n".join(line for line in outcome.lines.get("test", []) if not re.match(r"\d+\.\d+ s: ", line))
    good = outcome.results["kernel"] == 0
    if all_passed := re.search(r"All tests passed \(\d+ assertions? in (\d+) test cases?\)", report):
        return Cell("kernel", good, f"{all_passed[1]}/{all_passed[1]}", report)
    summary = re.search(r"test cases: +(\d+) \| +(?:(\d+) passed \| +)?(\d+) failed", report)
    text = f"{summary[2] or 0}/{summary[1]}" if summary else "no report"
    return Cell("kernel", False, text, report)


def aligned(rows: list[list[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def table(results: dict[Row, list[Cell]]) -> str:
    """Kernel × method × test, and what Debian's systemd was tried with. ²: at the second attempt."""
    steps = ["plan", "kernel", "tcp", "tcp6", "unix", "redis", "parts"]
    lines = [["kernel", "method", "cgroups", "privilege", "in use: sockets / polls, state of sockets", *steps[1:]]]
    services = [["kernel", "method", *SERVICE_STEPS]]
    for row, cells in results.items():
        texts = {cell.step: cell.text if cell.good else f"FAILED {cell.text}" for cell in cells}
        about = [f"{row.kernel.name} {row.kernel.machine}", row.method if row.types else "--btf.path"]
        if row.systemd:
            services.append([*about, *(texts.get(step, "") for step in SERVICE_STEPS)])
            continue
        privilege = "BPF, PERFMON" if row.unprivileged else "root"
        lines.append([*about, row.cgroups, privilege, *(texts.get(step, "") for step in steps)])
    return "\n\n".join(aligned(each) for each in (lines, services) if len(each) > 1)


def verifier_table(results: dict[Row, list[Cell]]) -> str:
    """Instructions that the verifier processed (the limit is 1 000 000), the dearest programs of each row."""
    lines = [["kernel", "method", "verifier: dearest programs, instructions processed"]]
    for row, cells in results.items():
        for cell in cells:
            if cell.programs and not row.unprivileged and row.cgroups == "v2":
                dearest = sorted(cell.programs.items(), key=lambda item: -item[1])[:4]
                shown = ", ".join(f"{name} {count}" for name, count in dearest)
                lines.append([f"{row.kernel.name} {row.kernel.machine}", row.method, shown])
    return aligned(lines) if len(lines) > 1 else "verifier: no statistics"
