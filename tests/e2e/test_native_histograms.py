"""Native histograms: what a real Prometheus makes of them, and that a narrow distribution is as narrow in all places."""

import json
import re
import subprocess
import time

import pytest

from support import ledger, paths, protobuf
from support.clients import ExactLoad
from support.exposition import OPENMETRICS, TEXT
from support.prometheus import Prometheus, Relay
from support.servers import ExactServer
from support.tacho import Tacho, target
from support.waiting import wait_until

RATE = 1009
WINDOW = 8
# Ahead of others: what a busy machine adds to a reply is added where it can be seen by both.
SOON = ["nice", "-n", "-15"]
FAMILY = "tacho_request_duration_seconds"


def families(tacho) -> dict:
    status, headers, body = tacho.http("/metrics", headers={"Accept": protobuf.ACCEPT})
    assert status == 200 and headers["Content-Type"].startswith("application/vnd.google.protobuf; proto=io.prometheus")
    return {family.name: family for family in protobuf.families(body)}


def histogram(tacho, name: str):
    (metric,) = [m for m in families(tacho)[FAMILY].metric if protobuf.labels_of(m)["target"] == name]
    return metric.histogram


def test_promql_says_the_same_of_every_form(cgroups):
    group = cgroups("forms")
    config = {"targets": [target("forms", group.path)], "histograms": {"buckets_per_octave": 4}}
    with (
        ExactServer(group.prefix) as server,
        Tacho(config) as tacho,
        Relay(tacho.address) as native,
        Relay(tacho.address, accept=TEXT) as text,
        Relay(tacho.address, accept=OPENMETRICS) as openmetrics,
        Prometheus(
            {"native/tacho": native.address, "text/tacho": text.address, "openmetrics/tacho": openmetrics.address},
            rule_files=[paths.REPOSITORY / "deploy/prometheus/tacho-rules.yaml"],
            native=True,
        ) as prometheus,
        ExactLoad(server.address, connections=4, rate=RATE) as load,
    ):
        at = prometheus.full_window("forms", WINDOW, jobs=3)
        counted = load.finish()

        def ask(expression: str, at: float | None = None) -> dict[str, float]:
            return {labels["job"].removesuffix("/tacho"): value for labels, value in prometheus.query(expression, at)}

        only = '{target="forms"}'
        rates = ask(f"rate(tacho_requests_total{only}[{WINDOW}s])", at)
        counts = ask(f"histogram_count(rate({FAMILY}{only}[{WINDOW}s]))", at) | ask(f"rate({FAMILY}_count{only}[{WINDOW}s])", at)
        assert rates.keys() == {"native", "text", "openmetrics"}
        for job in rates:
            assert counts[job] == pytest.approx(rates[job], rel=1e-6), job
            assert rates[job] == pytest.approx(counted.rate, rel=0.05), job

        # When the load has ended all of them have the same to say, whenever they were asked.
        def everything() -> bool:
            counts = ask(f"histogram_count({FAMILY}{only})") | ask(f"{FAMILY}_count{only}")
            return counts == dict.fromkeys(rates, counted.requests)

        wait_until(everything, 10, "all requests in every form")
        sums = ask(f"histogram_sum({FAMILY}{only})") | ask(f"{FAMILY}_sum{only}")
        assert sums.keys() == rates.keys() and len(set(sums.values())) == 1, sums
        for q in (0.5, 0.9, 0.99):
            fine = ask(f"histogram_quantile({q}, {FAMILY}{only})")
            classic = ask(f"histogram_quantile({q}, {FAMILY}_bucket{only})")
            assert fine.keys() == {"native"} and classic.keys() == {"text", "openmetrics"}
            assert classic["text"] == classic["openmetrics"]
            # Both are somewhere in one bucket of four an octave, which is 19 % wide.
            assert fine["native"] == pytest.approx(classic["text"], rel=0.19), q
            assert fine["native"] == pytest.approx(protobuf.quantile(histogram(tacho, "forms"), q), rel=1e-9), "by other arithmetic"
        # So do the recorded quantiles, each from the finest that there is; they leave out what was before the first scrape.
        for q, name in ((0.5, "p50"), (0.99, "p99")):

            def recorded_alike() -> bool:
                recorded = ask(f"instance_target:{FAMILY}:{name}_rate5m{only}")
                fine = ask(f"histogram_quantile({q}, rate({FAMILY}{only}[5m]))")
                return recorded == pytest.approx(fine | ask(f"histogram_quantile({q}, rate({FAMILY}_bucket{only}[5m]))"))

            wait_until(recorded_alike, 10, f"{name} is recorded of every form")
        assert {element["health"] for element in prometheus.targets()} == {"up"}, prometheus.targets()
        series = ask(f'count by (job) ({{__name__=~"{FAMILY}.*"}})')
        lines = ask('count by (job) ({__name__=~"tacho_.+"})')
    assert all(kind.startswith("application/vnd.google.protobuf") for kind in native.content_types)
    assert all(kind.startswith("text/plain") for kind in text.content_types)
    assert all(kind.startswith("application/openmetrics-text") for kind in openmetrics.content_types)
    assert series["native"] == 1 and series["text"] == series["openmetrics"] == 4 * 26 + 4
    assert lines["native"] < lines["text"] / 4, "that is what they are for"


@pytest.mark.parametrize("reply_delay_us", [6_300, 10_000, 15_100])
def test_a_narrow_distribution_is_narrow_everywhere(cgroups, reply_delay_us):
    """p50 and p99 within 6 % of the client's own: on the page, in top, from native histograms."""
    for attempt in range(5):
        client, seen = observe_narrow(cgroups(f"narrow-{attempt}"), reply_delay_us)
        if client["p99"] < 1.1 * client["p50"]:
            break
    else:
        pytest.skip(f"the machine is too busy for a narrow distribution: the client saw {client}")
    for q, places in seen.items():
        said = ", ".join(f"{place} {value * 1e3:.2f}" for place, value in places.items())
        ledger.note(f"replies after {reply_delay_us} µs, {q}: client {client[q] * 1e3:.2f} ms, {said}")
        for place, value in places.items():
            assert value == pytest.approx(client[q], rel=0.06), (place, q, client, seen)


def observe_narrow(group, reply_delay_us: int) -> tuple[dict, dict]:
    """What the client measured, and what is said of it: quantile → place → seconds."""
    with (
        ExactServer([*group.prefix, *SOON], reply_delay_us=reply_delay_us) as server,
        Tacho({"targets": [target("narrow", group.path)]}) as tacho,
        ExactLoad(server.address, prefix=SOON, requests=400) as load,
    ):
        counted = load.result()
        client = json.loads(load.process.output.splitlines()[-1])["latency_seconds"]
        native = wait_until(lambda: (h := histogram(tacho, "narrow")).sample_count == counted.requests and h, 5, "all are counted")
        (row,) = json.loads(tacho.http("/api/v1/targets?filter=narrow&limit=1")[2])["rows"]
        top = subprocess.run(
            [paths.require(paths.TACHO), "top", "--json", "--url", tacho.address], capture_output=True, text=True, check=True
        )
        (in_top,) = [each for each in json.loads(top.stdout)["rows"] if each["target"] == "narrow"]
    return client, {
        q: {"page": row[q], "top": in_top[q], "native": protobuf.quantile(native, float(f"0.{q[1:]}"))} for q in ("p50", "p99")
    }


def test_configured_forms_and_what_is_dropped(cgroups):
    group = cgroups("chosen")
    targets = [target("chosen", group.path)]

    def reconfigure(config: dict) -> None:
        tacho.configure(config)
        assert tacho.reload() == 200

    with ExactServer(group.prefix), Tacho({"targets": targets}) as tacho:
        both, names = histogram(tacho, "chosen"), families(tacho).keys()
        assert both.zero_threshold == 2.0**-20 and both.schema == 4 and len(both.bucket) == 28
        assert both.created_timestamp.seconds == pytest.approx(time.time(), abs=60)
        assert {"tacho_build_info", "tacho_saturation_ratio", "process_threads"} <= names

        reconfigure({"targets": targets, "histograms": {"format": "native"}})
        assert not histogram(tacho, "chosen").bucket and histogram(tacho, "chosen").schema == 4
        assert len(tacho.scrape().all(f"{FAMILY}_bucket", target="chosen")) == 28, "text has no other form"

        drop = ["tacho_saturation_*", "process_threads", "tacho_nothing"]
        reconfigure({"targets": targets, "histograms": {"format": "classic"}, "metrics": {"drop": drop}})
        assert histogram(tacho, "chosen").zero_threshold == 0 and len(histogram(tacho, "chosen").bucket) == 28
        dropped = {"tacho_saturation_ratio", "tacho_saturation_ratio_error", "process_threads"}
        assert names - families(tacho).keys() == dropped
        for text in (tacho.text(), tacho.text(OPENMETRICS)):
            assert not [line for line in text.splitlines() if any(re.match(rf"(# \w+ )?{name}\b", line) for name in dropped)]
        assert ": warning: metrics.drop[2]: 'tacho_nothing' matches no metric of tacho" in tacho.process.output
        status, headers, body = tacho.http("/metrics", headers={"Accept": protobuf.ACCEPT, "Accept-Encoding": "gzip"})
        assert status == 200 and headers["Content-Encoding"] == "gzip" and body[:2] == b"\x1f\x8b"
