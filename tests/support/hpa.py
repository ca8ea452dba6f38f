"""Kubernetes' HorizontalPodAutoscaler, as its documentation publishes the algorithm (autoscaling/v2, "Algorithm details").

No cluster, no clock: every decision is asked for with its time, so that hours pass as fast as they are computed.
"""

import dataclasses
import math
from collections.abc import Mapping

TOLERANCE = 0.1
SYNC_SECONDS = 15


@dataclasses.dataclass
class Autoscaler:
    """`behavior` as the object's spec has it; `target` is an average over the pods."""

    target: float
    least: int
    most: int
    behavior: Mapping

    @classmethod
    def of(cls, hpa: Mapping) -> "Autoscaler":
        """By a HorizontalPodAutoscaler with one metric of type Pods."""
        spec = hpa["spec"]
        (metric,) = spec["metrics"]
        target = metric["pods"]["target"]["averageValue"]
        return cls(int(target.removesuffix("m")) / 1000, spec["minReplicas"], spec["maxReplicas"], spec["behavior"])

    def __post_init__(self):
        self._recommended: list[tuple[float, int]] = []
        self._changes: list[tuple[float, int]] = []  # time, pods added (negative: taken away)

    def by_pods(self, now: float, pods: Mapping[str, float | None]) -> int:
        """The number of pods from now on, by a metric of type Pods; None: the pod has no value."""
        known = [value for value in pods.values() if value is not None]
        current = len(pods)
        if not known:  # FailedGetPodsMetric
            return current
        return self._decide(now, current, self._of_pods(known, current))

    def by_sum(self, now: float, current: int, total: float | None) -> int:
        """The same by a metric of type External, AverageValue; None: it cannot be had."""
        if total is None:
            return current
        within = abs(total / (self.target * current) - 1) <= TOLERANCE
        return self._decide(now, current, current if within else math.ceil(total / self.target - 1e-9))

    def _of_pods(self, known: list[float], current: int) -> int:
        ratio = sum(known) / len(known) / self.target
        missing = current - len(known)
        if missing:
            # Pods without a value damp: they count as at the target when it shrinks, as idle when it grows.
            filled = sum(known) + missing * (self.target if ratio < 1 else 0)
            damped = filled / current / self.target
            if (ratio < 1) != (damped < 1):
                return current
            ratio = damped
        if abs(ratio - 1) <= TOLERANCE:
            return current
        wanted = math.ceil(ratio * current - 1e-9)
        return max(wanted, current) if ratio > 1 else min(wanted, current)

    def _decide(self, now: float, current: int, wanted: int) -> int:
        wanted = self._limited(now, current, self._stabilized(now, current, wanted))
        if wanted != current:
            self._changes.append((now, wanted - current))
        return wanted

    def _stabilized(self, now: float, current: int, wanted: int) -> int:
        self._recommended.append((now, wanted))

        def within(direction: str) -> list[int]:
            window = self.behavior[direction]["stabilizationWindowSeconds"]
            return [wanted, *(number for at, number in self._recommended if at > now - window)]

        return min(max(current, min(within("scaleUp"))), max(within("scaleDown")))

    def _limited(self, now: float, current: int, wanted: int) -> int:
        if wanted > current:
            allowed = max(self._allowed(now, current, policy, 1) for policy in self.behavior["scaleUp"]["policies"])
            return min(wanted, max(allowed, current), self.most)
        if wanted < current:
            allowed = min(self._allowed(now, current, policy, -1) for policy in self.behavior["scaleDown"]["policies"])
            return max(wanted, min(allowed, current), self.least)
        return min(max(wanted, self.least), self.most)

    def _allowed(self, now: float, current: int, policy: Mapping, direction: int) -> int:
        changed = sum(
            pods for at, pods in self._changes if at > now - policy["periodSeconds"] and pods * direction > 0
        )
        start = current - changed
        if policy["type"] == "Pods":
            return start + direction * policy["value"]
        proposed = start * (1 + direction * policy["value"] / 100)
        return math.ceil(proposed - 1e-9) if direction > 0 else int(proposed + 1e-9)
