"""What /metrics says, as a dictionary from (name, labels) to values."""

import functools
import re

import prometheus_client.openmetrics.parser
import prometheus_client.parser

from support import paths

TEXT = "text/plain;version=0.0.4"
OPENMETRICS = "application/openmetrics-text;version=1.0.0"


@functools.cache
def first_event_families() -> dict[str, str]:
    """Names of the families whose series appear with their first event, with their own labels."""
    rows = re.findall(r"^\| `(\w+)` \|(.*)\| first event \|", (paths.REPOSITORY / "exporter" / "METRICS.md").read_text(), re.MULTILINE)
    return {name: (re.findall(r"`(\w+)`", cells) or [""])[0] for name, cells in rows}


class Samples:
    """All samples of one exposition; a look-up names only the labels that matter."""

    def __init__(self, families):
        self.families = list(families)
        self.values = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families
            for sample in family.samples
        }
        self._by_name: dict[str, list[tuple[dict, float]]] = {}
        for (name, labels), value in self.values.items():
            self._by_name.setdefault(name, []).append((dict(labels), value))

    @classmethod
    def parse(cls, text: str, openmetrics: bool = False) -> "Samples":
        """Reads with Prometheus' own Python parsers; the OpenMetrics one is strict and raises ValueError."""
        parser = prometheus_client.openmetrics.parser if openmetrics else prometheus_client.parser
        return cls(parser.text_string_to_metric_families(text))

    def all(self, name: str, **labels: str) -> list[tuple[dict, float]]:
        """(labels, value) of every sample of that name that has at least these labels."""
        wanted = labels.items()
        return [(have, value) for have, value in self._by_name.get(name, []) if wanted <= have.items()]

    def get(self, name: str, **labels: str) -> float:
        """The one sample's value; KeyError when there is none, ValueError when there are several.

        0 for a series that appears with its first event, of a target that is there.
        """
        found = self.all(name, **labels)
        if not found and self._has_not_appeared(name, labels):
            return 0
        if not found:
            raise KeyError(f"no sample {name}{labels}")
        if len(found) > 1:
            raise ValueError(f"{len(found)} samples {name}{labels}: {[have for have, _ in found]}")
        return found[0][1]

    def _has_not_appeared(self, name: str, labels: dict) -> bool:
        own = first_event_families().get(re.sub("_(sum|count)$", "", name))
        if own is None or "target" not in labels:
            return False
        return self.has("tacho_target_info", **{label: value for label, value in labels.items() if label != own})

    def sum(self, name: str, **labels: str) -> float:
        return sum(value for _, value in self.all(name, **labels))

    def has(self, name: str, **labels: str) -> bool:
        return bool(self.all(name, **labels))

    def target_of(self, cgroup: str) -> str:
        """The `target` label under which a cgroup is observed; KeyError while it is not."""
        for labels, _ in self.all("tacho_target_info", cgroup=cgroup):
            return labels["target"]
        raise KeyError(f"no tacho_target_info for {cgroup}")


class Change:
    """Counters of one target between two scrapes."""

    def __init__(self, before: Samples, after: Samples, target: str, **labels: str):
        self.before, self.after, self.target = before, after, target
        self.labels = {"target": target, **labels}

    def of(self, name: str, **labels: str) -> float:
        before = self.before.sum(name, **self.labels, **labels)
        return self.after.get(name, **self.labels, **labels) - before

    @property
    def requests(self) -> int:
        return int(self.of("tacho_requests_total"))

    @property
    def sends(self) -> int:
        return int(self.of("tacho_socket_operations_total", direction="send"))

    @property
    def receives(self) -> int:
        return int(self.of("tacho_socket_operations_total", direction="receive"))

    def quantile(self, family: str, q: float, **labels: str) -> float:
        """Of a histogram's observations between the scrapes, linear within a bucket, as PromQL's histogram_quantile."""
        counts: dict[float, float] = {}
        for sign, samples in ((1, self.after), (-1, self.before)):
            for have, value in samples.all(f"{family}_bucket", **self.labels, **labels):
                bound = float(have["le"])
                counts[bound] = counts.get(bound, 0) + sign * value
        bounds = sorted(counts)
        wanted = q * counts[bounds[-1]]
        if wanted <= 0:
            raise ValueError(f"{family} observed nothing")
        lower, below = 0.0, 0.0
        for bound in bounds:
            if counts[bound] >= wanted:
                return lower + (bound - lower) * (wanted - below) / (counts[bound] - below)
            lower, below = bound, counts[bound]
        raise ValueError(f"{family}: buckets are not cumulative")
