"""Estimators with fitted constants, each server judged by constants that were fitted without it."""

import numpy

from validation import saturation

FEATURES = {
    "logistic: CPU, M/M/1 waiting": ("CPU: running / C", "M/M/1 with so many waiting"),
    "logistic: M/M/1 waiting, queue share": ("M/M/1 with so many waiting", "queue share: Wq / (Wq + S)"),
    "logistic: all five": (
        "CPU: running / C", "M/M/1 with so many waiting", "queue share: Wq / (Wq + S)",
        "runnable / (running + runnable)", "poll busy: 1 − idle / threads",
    ),
}  # fmt: skip
_PENALTY, _STEPS = 0.1, 50


def _with_constant(signals_of_levels, names) -> numpy.ndarray:
    columns = [[saturation.ESTIMATORS[name](signals) for signals in signals_of_levels] for name in names]
    return numpy.column_stack([numpy.ones(len(signals_of_levels)), *columns])


def fit(features: numpy.ndarray, truths: numpy.ndarray) -> numpy.ndarray:
    """Logistic regression with a ridge, by Newton's method."""
    weights = numpy.zeros(features.shape[1])
    ridge = _PENALTY * numpy.eye(features.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + numpy.exp(-features @ weights))
        slope = features.T @ (chance - truths) + ridge @ weights
        curvature = features.T @ (features * (chance * (1 - chance))[:, None]) + ridge
        weights -= numpy.linalg.solve(curvature, slope)
    return weights


def estimators(judged: dict) -> dict:
    """Name → server → estimator, fitted on the other servers; the score 0.8 is where a level is as likely saturated as not."""
    found = {}
    for name, features in FEATURES.items():
        found[name] = {}
        for server in judged:
            rows = [row for other, rows in judged.items() if other != server for row in rows]
            table = _with_constant([signals for _, signals, _ in rows], features)
            weights = fit(table, numpy.array([float(truth) for _, _, truth in rows]))
            found[name][server] = _scorer(weights, features)
    return found


def _scorer(weights, features):
    def score(signals) -> float:
        value = float(_with_constant([signals], features)[0] @ weights)
        return float(1 / (1 + numpy.exp(-value) * (1 / saturation.THRESHOLD - 1)))

    return score
