"""The levels of a sweep, read back from its CSV file."""

import csv
import pathlib

from validation.subjects import SUBJECTS

DURATION = "tacho_request_duration_seconds"


class Level:
    """One level: `client`, `truth` and `tacho` give a value of an interval, 0 where nothing was counted."""

    def __init__(self, server: str, load: float, repeat: int, capacity: float):
        self.server, self.load, self.repeat, self.capacity = server, load, repeat, capacity
        self.subject = SUBJECTS[server]
        self._values: dict[tuple[str, str, str], float] = {}

    def take(self, source: str, interval: str, name: str, value: float) -> None:
        self._values[source, interval, name] = value

    def client(self, name: str, interval: str = "whole") -> float:
        return self._values.get(("client", interval, name), 0.0)

    def truth(self, name: str, interval: str = "window") -> float:
        return self._values.get(("truth", interval, name), 0.0)

    def tacho(self, name: str, interval: str = "window") -> float:
        return self._values.get(("tacho", interval, name), 0.0)

    def family(self, name: str, interval: str = "window") -> dict[str, float]:
        """Labels as in `outcome="ready"` → value, of all series of that name."""
        found = {}
        for (source, when, series), value in self._values.items():
            if source == "tacho" and when == interval and (series == name or series.startswith(name + "{")):
                found[series[len(name) + 1 : -1]] = value
        return found

    def has(self, name: str) -> bool:
        return bool(self.family(name))

    @property
    def seconds(self) -> float:
        """Of the window."""
        return self.client("seconds", "window")

    # Rates, requests a second.

    @property
    def client_rate(self) -> float:
        """Completed, over the time from the first request to the last reply."""
        return self.client("turns") / self.client("elapsed")

    @property
    def turn_rate(self) -> float:
        """The same as tacho counts it: from standstill to standstill, over the client's time."""
        return self.tacho("tacho_requests_total", "whole") / self.client("elapsed")

    @property
    def client_window_rate(self) -> float:
        return self.client("turns", "window") / self.seconds

    @property
    def turn_window_rate(self) -> float:
        return self.tacho("tacho_requests_total") / self.seconds

    @property
    def observed_rate(self) -> float:
        """Equation 1 of the paper over the window: 1 / mean(Δt) of sends."""
        return self._intervals("intervals") / self._intervals("interval_seconds")

    @property
    def interval_variance(self) -> float:
        """Equation 2 over the window, in s²."""
        count = self._intervals("intervals")
        mean = self._intervals("interval_seconds") / count
        return self._intervals("interval_seconds_squared") / count - mean * mean

    @property
    def cv2(self) -> float:
        return self.interval_variance * self.observed_rate**2

    def _intervals(self, what: str) -> float:
        return self.tacho(f'tacho_socket_{what}_total{{direction="send"}}')

    @property
    def poll_duration(self) -> float | None:
        """Mean of the polling calls that ended in the window; None without any."""
        calls = sum(self.family("tacho_poll_duration_seconds_count").values())
        return sum(self.family("tacho_poll_duration_seconds_sum").values()) / calls if calls else None

    def quantile(self, q: float, family: str = DURATION) -> float | None:
        """Of the whole interval, linear within a bucket."""
        below = sorted(
            (float(labels.split('"')[1]), count) for labels, count in self.family(f"{family}_bucket", "whole").items()
        )
        if not below:
            return None
        wanted = q * below[-1][1]
        last_bound, last_count = 0.0, 0.0
        for bound, count in below:
            if count >= wanted:
                return last_bound + (bound - last_bound) * (wanted - last_count) / (count - last_count)
            last_bound, last_count = bound, count
        return None


def read(file: pathlib.Path) -> list[Level]:
    """The complete levels of one server, by load and repeat."""
    levels: dict[tuple[str, str], Level] = {}
    complete = set()
    capacity = 0.0
    with open(file, newline="") as source:
        for row in csv.DictReader(source):
            if row["name"] == "capacity":
                capacity = float(row["value"])
                continue
            key = (row["load"], row["repeat"])
            level = levels.setdefault(key, Level(file.stem, float(key[0]), int(key[1]), capacity))
            if row["name"] == "complete":
                complete.add(key)
            else:
                level.take(row["source"], row["interval"], row["name"], float(row["value"]))
    return sorted((levels[key] for key in complete), key=lambda level: (level.load, level.repeat))


def read_all(directory: pathlib.Path) -> dict[str, list[Level]]:
    """By server, in the order of the subjects; servers without a complete level are left out."""
    found = {name: read(directory / f"{name}.csv") for name in SUBJECTS if (directory / f"{name}.csv").exists()}
    return {name: levels for name, levels in found.items() if levels}
