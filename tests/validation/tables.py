"""The report's tables, in Markdown."""

import pathlib
import statistics

from validation import accuracy, overhead, saturation
from validation.levels import read_all


def table(headings: list[str], rows: list[list[str]]) -> str:
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def r2(value: float) -> str:
    """Not rounded up to 1."""
    return "1" if value > 1 - 1e-9 else f"{int(value * 1e6) / 1e6:.6f}".rstrip("0") if value > 0.999 else f"{value:.4f}"


def percent(value: float) -> str:
    return "0" if value == 0 else f"{100 * value:.3g} %"


def extent(servers: dict) -> str:
    """How much was measured, and how much of the server's CPU others took from it meanwhile."""
    everything = [level for levels in servers.values() for level in levels]
    full = [level for level in everything if level.truth("cpu_seconds") > 0.8 * level.seconds]
    others = [max(0.0, 1 - level.truth("cpu_seconds") / level.truth("busy_seconds")) for level in full] or [0.0]
    return (
        f"{len(servers)} servers, {len(everything)} levels of {_arrivals(servers):.0f} s, {sum(level.client('turns') for level in everything):.0f} requests. "
        f"Of the time that the server's CPU was busy in levels that needed most of it, others had {percent(statistics.median(others))} "
        f"(median) to {percent(max(others))} (worst), interrupts included."
    )


def subjects(servers: dict) -> str:
    rows = []
    for name, levels in servers.items():
        subject = levels[0].subject
        requests = sum(level.client("turns") for level in levels)
        rows.append([name, subject.model, subject.request, f"{levels[0].capacity * subject.turns:.0f}", f"{requests:.0f}"])
    return table(["server", "how it serves", "a request", "capacity, requests/s", "requests in all"], rows)


def counts(servers: dict) -> str:
    rows = []
    for name, levels in servers.items():
        clients = sum(level.client("turns") for level in levels)
        seen = sum(level.tacho("tacho_requests_total", "whole") for level in levels)
        fit = accuracy.turns(levels)
        rows.append([name, f"{clients:.0f}", f"{seen:.0f}", r2(fit.r2_equal), percent(fit.mean_error), percent(fit.worst_error)])
    return table(["server", "client's requests", "tacho's turns", "R² (y = x)", "mean error", "worst level"], rows)


def rates(servers: dict) -> str:
    rows = []
    for name, levels in servers.items():
        turns, sends = accuracy.windowed_turns(levels), accuracy.observed(levels)
        rows.append([
            name, r2(turns.r2_fit), r2(turns.r2_equal), percent(turns.mean_error), r2(sends.r2_fit), r2(sends.r2_equal),
            percent(sends.mean_error), f"{sends.slope:.3f}",
        ])  # fmt: skip
    headings = ["server", "turns: R² (fit)", "R² (y = x)", "mean error", "sends: R² (fit)", "R² (y = x)", "mean error", "slope"]
    return table(headings, rows)


def quantiles(servers: dict) -> str:
    rows = []
    for name, levels in servers.items():
        cells = []
        for wanted in (50, 99):
            agreement = accuracy.quantile_agreement(levels, wanted)
            cells.append(f"{agreement.median:.2f} ({agreement.low:.2f} … {agreement.high:.2f})" if agreement else "–")
        if cells != ["–", "–"]:
            rows.append([name, *cells])
    return table(["server", "p50: tacho / client", "p99: tacho / client"], rows)


def estimators(verdicts: list) -> str:
    rows = []
    for verdict in sorted(verdicts, key=lambda one: -(one.pooled or 0)):
        worst = f"{verdict.worst[0]:.3f} ({verdict.worst[1]})" if verdict.worst else "–"
        rows.append([
            verdict.name, f"{verdict.pooled:.4f}" if verdict.pooled is not None else "–", worst,
            *(percent(share) for share in verdict.false_below), percent(verdict.missed),
            f"{verdict.lead:.2f}" if verdict.lead else "–",
        ])  # fmt: skip
    headings = ["estimator", "AUC, all levels", "AUC, worst server", "false < 60 %", "false < 70 %", "missed", "lead"]
    return table(headings, rows)


def blind(judged: dict, name: str, everywhere) -> str:
    """Which servers the table above leaves out, and why."""
    reasons = {server: rows[0][0].subject.blind for server, rows in judged.items() if rows and rows[0][0].subject.blind}
    if not reasons:
        return ""
    lines = [f"- {server}: {reason}" for server, reason in reasons.items()]
    return "\n".join([
        "Left out are servers whose saturation no signal of theirs shows. With them the AUC of "
        f"{name} is {everywhere.pooled:.4f}:", "", *lines, "",
    ])  # fmt: skip


def objectives(servers: dict, name: str) -> str:
    """Does the verdict depend on what is called saturated?"""
    seeing = {server: levels for server, levels in servers.items() if not levels[0].subject.blind}
    rows = []
    for factor in (3, saturation.FACTOR, 10):
        verdict = saturation.judge(name, saturation.ESTIMATORS[name], saturation.judged(seeing, factor))
        rows.append([
            f"p99 above {factor} × that of low load", f"{verdict.pooled:.4f}", *(percent(share) for share in verdict.false_below),
            percent(verdict.missed),
        ])  # fmt: skip
    return table([f"{name}, if saturated means", "AUC, all levels", "false < 60 %", "false < 70 %", "missed"], rows)


def saturation_by_server(judged: dict, name: str) -> str:
    estimator = saturation.ESTIMATORS[name]
    rows = []
    for server, levels in judged.items():
        verdict = saturation.judge(name, estimator, {server: levels})
        others = [(level, signals, truth) for other, found in judged.items() if other != server for level, signals, truth in found]
        threshold = saturation.best_threshold(others, estimator)
        right = [(estimator(signals) >= threshold) == truth for _, signals, truth in levels]
        rows.append([
            server, f"{sum(truth for *_, truth in levels)} of {len(levels)}",
            f"{verdict.pooled:.3f}" if verdict.pooled is not None else "–", *(percent(share) for share in verdict.false_below),
            percent(verdict.missed), f"{verdict.lead:.2f}" if verdict.lead else "–",
            f"{threshold:.2f}", percent(sum(right) / len(right)),
        ])  # fmt: skip
    headings = [
        "server", "saturated levels", "AUC", "false < 60 %", "false < 70 %", "missed", "lead",
        "best threshold of the others", "right with it",
    ]  # fmt: skip
    return table(headings, rows)


def mistakes(judged: dict, name: str) -> str:
    """The levels that the estimator `name` misses, and those below 70 % load that it takes for saturated ones."""
    estimator = saturation.ESTIMATORS[name]
    rows = []
    for server, levels in judged.items():
        objective = saturation.objective([level for level, *_ in levels])
        for level, signals, truth in levels:
            score = estimator(signals)
            above = score > saturation.THRESHOLD
            if above == truth or (above and level.load >= saturation.UNLOADED[-1]):
                continue
            rows.append([
                server, "missed" if truth else "false", f"{100 * level.load:.0f} %", f"{int(100 * score) / 100:.2f}",
                f"{1000 * level.client('latency_p99'):.0f} ms", f"{1000 * objective:.0f} ms",
            ])  # fmt: skip
    return table(["levels judged wrongly", "", "load", "score", "client's p99", "objective"], rows) if rows else ""


def gauge(directory: pathlib.Path, name: str) -> str:
    """The exported gauge beside the estimator `name`, which it is to be, over levels that are longer than its window."""
    servers = {server: levels for server, levels in read_all(directory).items() if len(levels) > 2}
    judged = {server: rows for server, rows in saturation.judged(servers).items() if not servers[server][0].subject.blind}
    if not judged:
        return ""
    estimator = saturation.ESTIMATORS[name]
    all_signals = [signals for rows in judged.values() for _, signals, _ in rows]
    apart = statistics.median(abs(signals.exported - estimator(signals)) for signals in all_signals)
    verdicts = [
        saturation.judge(f"{saturation.EXPORTED}, the gauge", lambda signals: signals.exported, judged),
        saturation.judge(f"{name}, from the counters", estimator, judged),
    ]
    return (
        f"The gauge itself, over {len(all_signals)} levels of {_arrivals(servers):.0f} s of {len(judged)} servers; it looks back on 2 s, "
        f"sampled once a second, and is {apart:.3f} (median) from what the counters say of the whole level:\n\n" + estimators(verdicts)
    )


def _arrivals(servers: dict) -> float:
    """Length of a level in seconds."""
    return statistics.median(level.client("arrivals_seconds") for levels in servers.values() for level in levels)


def overheads(directory: pathlib.Path) -> str:
    rows, everything = [], {}
    for file in sorted(directory.glob("*.csv")):
        found = overhead.ratios(file)
        if not found["p99"]:
            continue
        for what, values in found.items():
            everything.setdefault(what, []).extend(values)
        rows.append([file.stem, *(_spread(values) for values in found.values())])
    if not rows:
        return ""
    rows.append(["**all**", *(_spread(values) for values in everything.values())])
    return table(["with tacho / without", "p50", "p99", "throughput, closed loop", "CPU time a request"], rows)


def _spread(values: list[float]) -> str:
    if len(values) < 2:
        return "–"
    low, median, high = statistics.quantiles(values, n=4)
    return f"{median:.3f} ({low:.3f} … {high:.3f})"


def anatomy(levels: list) -> str:
    """Milliseconds a request by part, and who served it."""
    rows = []
    for level in levels:
        parts = sorted(((seconds, part) for part, seconds in level.parts.items() if seconds >= 0.005 * level.mean), reverse=True)
        modes = sorted(((share, mode) for mode, share in level.modes.items() if share >= 0.005), reverse=True)
        rows.append([
            level.server, level.load, str(level.requests), f"{1000 * level.mean:.3g}",
            ", ".join(f"{part} {1000 * seconds:.3g}" for seconds, part in parts),
            ", ".join(f"{mode} {percent(share)}" for share, mode in modes),
        ])  # fmt: skip
    return table(["server", "load", "requests", "mean, ms", "parts, ms", "served by"], rows)


def causes(trials: list) -> str:
    """How often the cause was named, by server and fault; what was named instead."""
    found: dict[tuple[str, str], list] = {}
    for trial in trials:
        found.setdefault((trial.server, trial.fault), []).append(trial)
    rows = []
    for (server, fault), of_these in found.items():
        wrong = [trial.named or "nothing" for trial in of_these if not trial.right]
        told = ", ".join(f"{name} ({wrong.count(name)})" for name in sorted(set(wrong)))
        rows.append([server, fault, f"{len(of_these) - len(wrong)} of {len(of_these)}", told or "–"])
    for title, of_these in (
        ("**something injected**", [trial for trial in trials if trial.expected]),
        ("**nothing injected**", [trial for trial in trials if not trial.expected]),
    ):
        right = sum(trial.right for trial in of_these)
        rows.append([title, "", f"{right} of {len(of_these)}", percent(right / len(of_these)) if of_these else "–"])
    return table(["server", "what was done to it", "named", "named instead"], rows)


def faults(directory: pathlib.Path) -> str:
    servers = {name: levels for name, levels in read_all(directory).items() if len(levels) > 2}
    return counts(servers) + "\n" + rates(servers) if servers else ""
