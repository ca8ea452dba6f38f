"""Exemplars: from a bucket of the durations' histogram to what its slowest request waited for, in a real Prometheus."""

import time
import urllib.request

import pytest

from support import protobuf
from support.clients.open_loop import OpenLoop
from support.exposition import OPENMETRICS, TEXT, Samples
from support.prometheus import Prometheus
from support.servers import Gunicorn
from support.tacho import Tacho, target
from support.waiting import wait_until

FAMILY = "tacho_request_duration_seconds"
ASKED = (120, 330, 190)  # milliseconds of sleep, one request after the other
BUCKETS = {0.25: 190, 0.5: 330}  # the slowest of them by the bucket that it is in


def ask(address: str, milliseconds: int) -> tuple[float, float, float]:
    """When it was sent and when the answer was there (Unix time), and seconds between."""
    began, clock = time.time(), time.monotonic()
    with urllib.request.urlopen(f"http://{address}/{milliseconds}", timeout=10) as answer:
        answer.read()
    return began, time.time(), time.monotonic() - clock


@pytest.mark.parametrize("form", ["openmetrics", "native"])
def test_prometheus_keeps_what_the_slowest_requests_waited_for(cgroups, form):
    group = cgroups(form)
    config = {"targets": [target(form, group.path)], "probes": {"anatomy": {"enabled": True}}}
    began = time.time()
    with (
        Gunicorn(group.prefix, "gthread", module="waiting") as server,
        Tacho(config) as tacho,
        Prometheus({"tacho": tacho.address}, native=form == "native", exemplars=True) as prometheus,
    ):
        with OpenLoop(server.address, "http", "/1", connections=4) as client:
            client.start(100, 4, seed=1)
            seen = {milliseconds: ask(server.address, milliseconds) for milliseconds in ASKED}
            assert client.result(60).errors == 0
        series = f'{FAMILY}{"" if form == "native" else "_bucket"}{{target="{form}"}}'

        def told() -> dict[float, dict]:
            """By value; all that Prometheus has of this target."""
            return {one["value"]: one for _, some in prometheus.exemplars(series, began) for one in some}

        wait_until(lambda: any(value >= 0.33 for value in told()), 10, "the slowest request is an exemplar")
        others = [one for value, one in told().items() if value > 0.125 and one["labels"]["part"] != "sleep"]
        if others:
            pytest.skip(f"the machine is too busy: requests that slept a millisecond took as long as the slowest: {others}")
        # Of a native histogram Prometheus 2.42 keeps one at a time.
        for bound, milliseconds in BUCKETS.items() if form == "openmetrics" else [(0.5, max(ASKED))]:
            sent, answered, client_saw = seen[milliseconds]
            found = [one for value, one in told().items() if milliseconds / 1000 <= value <= client_saw]
            assert len(found) == 1, (milliseconds, client_saw, told())
            (one,) = found
            assert bound / 2 < one["value"] <= bound
            assert one["labels"]["part"] == "sleep" and 0.85 <= float(one["labels"]["share"]) <= 1, one
            assert sent - 0.002 <= one["timestamp"] <= answered + 0.002, (sent, one, answered)
            if form == "openmetrics":
                (le,) = {have["le"] for have, some in prometheus.exemplars(series, began) if one in some}
                assert float(le) == bound
        # What a bucket has had once is not taken back by something earlier.
        assert prometheus.own("prometheus_target_scrapes_exemplar_out_of_order_total") == 0
        if form == "native":
            (metric,) = (
                metric for family in protobuf.families(tacho.http("/metrics", headers={"Accept": protobuf.ACCEPT})[2])
                if family.name == FAMILY for metric in family.metric if protobuf.labels_of(metric)["target"] == form
            )  # fmt: skip
            own = [protobuf.exemplar_of(one)[:2] for one in metric.histogram.exemplars]
            slowest = [value for labels, value in own if labels["part"] == "sleep"][-2:]
            for milliseconds, value in zip(sorted(ASKED)[-2:], slowest, strict=True):
                assert milliseconds / 1000 <= value <= seen[milliseconds][2], (seen, own)
        assert {element["health"] for element in prometheus.targets()} == {"up"}, prometheus.targets()


def test_exemplars_are_of_anatomy_and_of_formats_that_have_them(cgroups):
    group = cgroups("plain")
    targets = [target("plain", group.path)]

    def exemplars(tacho, accept: str) -> int:
        with tacho.watch("plain") as change:
            ask(server.address, 20)
        assert change.of("tacho_requests_total") > 0
        text = tacho.text(accept)
        families = Samples.parse(text, openmetrics=accept == OPENMETRICS).families
        return sum(one.exemplar is not None for family in families for one in family.samples)

    with Gunicorn(group.prefix, "gthread", module="waiting") as server:
        with Tacho({"targets": targets}) as tacho:
            assert exemplars(tacho, OPENMETRICS) == 0
        with Tacho({"targets": targets, "probes": {"anatomy": {"enabled": True}}}) as tacho:
            assert exemplars(tacho, OPENMETRICS) > 0
            assert exemplars(tacho, TEXT) == 0
