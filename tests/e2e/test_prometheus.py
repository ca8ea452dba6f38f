"""A real Prometheus scrapes both forms, and its rate() is the client's rate."""

import pytest

from support.clients import ExactLoad
from support.exposition import TEXT
from support.prometheus import Prometheus, Relay
from support.servers import ExactServer
from support.tacho import Tacho, target

RATE = 2003
WINDOW = 10


def test_rate_is_the_clients_rate_in_both_forms(cgroups, agree):
    group = cgroups("steady")
    with (
        ExactServer(group.prefix) as server,
        Tacho({"targets": [target("steady", group.path)]}) as tacho,
        Relay(tacho.address) as preferred,
        Relay(tacho.address, accept=TEXT) as text,
        Prometheus({"openmetrics": preferred.address, "text": text.address}) as prometheus,
    ):
        with tacho.watch("steady") as change, ExactLoad(server.address, connections=4, rate=RATE) as load:
            at = prometheus.full_window("steady", WINDOW, jobs=2)
            rates = prometheus.query(f'rate(tacho_requests_total{{target="steady"}}[{WINDOW}s])', at)
            counted = load.finish()
        agree("steady load, scraped by Prometheus", counted, change)
        assert {labels["job"] for labels, _ in rates} == {"openmetrics", "text"}
        for labels, rate in rates:
            assert rate == pytest.approx(counted.rate, rel=0.01), labels["job"]
        assert counted.rate == pytest.approx(RATE, rel=0.01), "the client kept its schedule"

        assert {element["health"] for element in prometheus.targets()} == {"up"}, prometheus.targets()
        assert all(kind.startswith("application/openmetrics-text") for kind in preferred.content_types)
        assert all(kind.startswith("text/plain; version=0.0.4") for kind in text.content_types)
        series = {labels["job"]: n for labels, n in prometheus.query('count by (job) ({__name__=~"tacho_.+"})')}
        assert series["text"] == series["openmetrics"], "the same series in both forms"
        buckets = prometheus.query('count by (job, le) (tacho_request_duration_seconds_bucket{target="steady"})')
        bounds = {job: {labels["le"] for labels, _ in buckets if labels["job"] == job} for job in series}
        assert bounds["text"] == bounds["openmetrics"] != set()
