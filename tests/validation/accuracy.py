"""How well rates and latencies agree with the client's."""

import dataclasses
import statistics


@dataclasses.dataclass(frozen=True)
class Fit:
    """A rate against the client's over the levels. `r2_fit`: of the best line, as in the paper; `r2_equal`: of y = x."""

    r2_fit: float
    r2_equal: float
    slope: float
    mean_error: float
    worst_error: float


def fit(truth: list[float], seen: list[float]) -> Fit:
    """Errors are relative to the truth."""
    slope, intercept = statistics.linear_regression(truth, seen)
    mean = statistics.fmean(seen)
    total = sum((value - mean) ** 2 for value in seen)
    errors = [abs(value - true) / true for true, value in zip(truth, seen)]
    return Fit(
        r2_fit=1 - sum((value - slope * true - intercept) ** 2 for true, value in zip(truth, seen)) / total,
        r2_equal=1 - sum((value - true) ** 2 for true, value in zip(truth, seen)) / total,
        slope=slope,
        mean_error=statistics.fmean(errors),
        worst_error=max(errors),
    )


def turns(levels) -> Fit:
    """Exact counts: from standstill to standstill."""
    return fit([level.client_rate for level in levels], [level.turn_rate for level in levels])


def windowed_turns(levels) -> Fit:
    """As Prometheus would see it: between two scrapes while requests arrive."""
    return fit([level.client_window_rate for level in levels], [level.turn_window_rate for level in levels])


def observed(levels) -> Fit:
    """The paper's estimate, between the same scrapes."""
    return fit([level.client_window_rate for level in levels], [level.observed_rate for level in levels])


@dataclasses.dataclass(frozen=True)
class Agreement:
    """tacho's quantile over the client's: the median of the levels, and the two quartiles."""

    median: float
    low: float
    high: float


def quantile_agreement(levels, percent: int) -> Agreement | None:
    """The client's counts from when the request was sent: what waits inside the client is not the server's."""
    ratios = [
        seen / level.client(f"round_trip_p{percent}")
        for level in levels
        if level.subject.turns == 1 and (seen := level.quantile(percent / 100)) and level.client(f"round_trip_p{percent}")
    ]
    if len(ratios) < 2:
        return None
    low, median, high = statistics.quantiles(ratios, n=4)
    return Agreement(median, low, high)
