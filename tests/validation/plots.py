"""Plots of the report, one small panel a server."""

import math
import pathlib
import statistics

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from validation import saturation  # noqa: E402

matplotlib.rcParams.update({
    "font.size": 8, "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlesize": 9, "lines.markersize": 3, "axes.grid": True, "grid.alpha": 0.3,
})  # fmt: skip
# Of Okabe and Ito, told apart by colour-blind readers.
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#777777"


def _grid(servers, title: str):
    columns = 4
    rows = math.ceil(len(servers) / columns)
    figure, axes = plt.subplots(rows, columns, figsize=(11, 2.3 * rows), squeeze=False, layout="constrained")
    figure.suptitle(title)
    flat = list(axes.flat)
    for unused in flat[len(servers) :]:
        unused.set_axis_off()
    for axis, name in zip(flat, servers):
        axis.set_title(name)
        axis.tick_params(which="minor", length=0)
    return figure, dict(zip(servers, flat))


def _save(figure, file: pathlib.Path) -> None:
    figure.savefig(file, dpi=80, metadata={"Software": None})
    plt.close(figure)


def _medians(levels, value) -> tuple[list[float], list[float]]:
    """Of the repeats of each load; loads without a value are left out."""
    found: dict[float, list[float]] = {}
    for level in levels:
        if (seen := value(level)) is not None:
            found.setdefault(level.load, []).append(seen)
    loads = sorted(found)
    return loads, [statistics.median(found[load]) for load in loads]


def rates(servers: dict, file: pathlib.Path) -> None:
    figure, axes = _grid(servers, "Requests a second: the client's (x), tacho's turns and the paper's estimate from sends (y)")
    for name, levels in servers.items():
        axis = axes[name]
        top = max(level.client_window_rate for level in levels)
        axis.plot([0, top], [0, top], color=GREY, linewidth=0.8)
        truth = [level.client_window_rate for level in levels]
        axis.plot(truth, [level.observed_rate for level in levels], "x", color=ORANGE, label="from sends (eq. 1)")
        axis.plot(truth, [level.turn_window_rate for level in levels], ".", color=BLUE, label="turns")
    next(iter(axes.values())).legend(frameon=False)
    _save(figure, file)


def variance(servers: dict, file: pathlib.Path) -> None:
    figure, axes = _grid(servers, "Intervals between sends over load: variance (ms², left, logarithmic) and CV² (right)")
    for name, levels in servers.items():
        axis, other = axes[name], axes[name].twinx()
        axis.plot(*_medians(levels, lambda level: 1e6 * level.interval_variance), ".-", color=BLUE, label="variance")
        axis.set_yscale("log")
        other.plot(*_medians(levels, lambda level: level.cv2), ".-", color=ORANGE, label="CV²")
        other.set_ylim(bottom=0)
        other.grid(False)
        axis.tick_params(axis="y", colors=BLUE)
        other.tick_params(axis="y", colors=ORANGE)
    _save(figure, file)


def polls(servers: dict, file: pathlib.Path) -> None:
    figure, axes = _grid(servers, "Mean duration of polling calls over load (ms, logarithmic): the paper's slack")
    for name, levels in servers.items():
        loads, values = _medians(levels, lambda level: level.poll_duration)
        if values:
            axes[name].plot(loads, [1000 * value for value in values], ".-", color=GREEN)
            axes[name].set_yscale("log")
        else:
            axes[name].text(0.5, 0.5, "no polling calls", ha="center", transform=axes[name].transAxes)
    _save(figure, file)


def latency(servers: dict, file: pathlib.Path) -> None:
    figure, axes = _grid(servers, "p50 and p99 over load (ms, logarithmic): the client's from sending, and tacho's duration")
    for name, levels in servers.items():
        axis = axes[name]
        for percent, line in ((50, "-"), (99, "--")):
            clients = _medians(levels, lambda level: 1000 * level.client(f"round_trip_p{percent}"))
            seen = _medians(levels, lambda level: (value := level.quantile(percent / 100)) and 1000 * value)
            axis.plot(*clients, line, color=GREY, label=f"client p{percent}")
            axis.plot(*seen, line, color=BLUE, label=f"tacho p{percent}")
        axis.set_yscale("log")
    next(iter(axes.values())).legend(frameon=False)
    _save(figure, file)


def scores(judged: dict, name: str, file: pathlib.Path) -> None:
    estimator = saturation.ESTIMATORS[name]
    figure, axes = _grid(judged, f"{name} over load; filled: saturated in the client's eyes")
    for server, rows in judged.items():
        axis = axes[server]
        axis.axhline(saturation.THRESHOLD, color=GREY, linewidth=0.8)
        for truth, face in ((False, "none"), (True, PURPLE)):
            points = [(level.load, estimator(signals)) for level, signals, saturated in rows if saturated == truth]
            axis.plot(*zip(*points) if points else ([], []), "o", markerfacecolor=face, markeredgecolor=PURPLE)
        axis.set_ylim(0, 1.05)
    _save(figure, file)
