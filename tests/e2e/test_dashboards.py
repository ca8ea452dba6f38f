"""A loaded server, tacho and a real Prometheus with our rules: every query of every panel, variable and rule is run.

One event loop that takes 2 ms for a reply, before 64 clients that send again at once: one request is worked on while
63 wait, as in an M/M/1 queue at 98 % of its capacity. What calls it is a target too, of which the server is a dependency.
"""

import contextlib
import dataclasses
import json
import math
import re
import signal
import time

import pytest

from support import dashboards, net
from support.cgroup import Cgroup
from support.clients import ExactLoad
from support.clients.open_loop import OpenLoop
from support.paths import BUILD, REPOSITORY
from support.process import Process
from support.prometheus import Prometheus
from support.servers import ExactServer, Waitress
from support.tacho import Tacho, target
from support.waiting import wait_until

CONNECTIONS = 64
WINDOW = 15  # seconds of load at least

# Queries that may be empty, each with the reason.
CONDITIONAL = {
    "tacho / Overview: variable namespace": "there is no Kubernetes here",
    "tacho / Target: variable pod": "there is no Kubernetes here",
    "tacho / Target: variable container": "there are no containers here",
    "tacho / Target: Tails of the parts C": "Prometheus reads text, in which this histogram has no buckets",
    "tacho / Target: Tails of the parts D": "the same",
    "tacho / Target: Wait for accept B": "the same",
}
# Alerts that have nothing to say about this scene. The other two must: the server is saturated, and queues.
SILENT = {
    "TachoDurationRegressed": "there is no yesterday",
    "TachoRequestsUnanswered": "every request is answered",
    "TachoTargetAbsent": "there was nothing an hour ago",
    "TachoExporterDown": "tacho answers",
    "TachoExporterAbsent": "tacho is scraped",
    "TachoHookMissing": "every hook is attached",
    "TachoCollectorFailing": "every collector succeeds",
    "TachoConfigRefused": "the configuration is good",
    "TachoEventsLost": "nothing is lost",
    "TachoMapNearlyFull": "there is room",
    "TachoTargetsOverflowed": "there are three targets",
}
# A mean of five minutes, of which the load takes less than half: promtool tests the threshold itself.
EASED = {"TachoTargetSaturated": ("> 0.9", "> 0.4")}
TARGETS = {"shop", "caller", "pool"}
# Panels that are not about the loop that serves, each with the target that they are about.
ABOUT = {
    "Calls to dependencies A": "caller",
    "Time of dependencies A": "caller",
    "Hand-over A": "pool",
    "Hand-over B": "pool",
    "Hand-over C": "pool",
}


class Scene:
    """What was measured: Prometheus, the moment at which it is asked, and the numbers of client and server."""

    def __init__(self, stack: contextlib.ExitStack):
        enter = stack.enter_context
        serving, calling, pooled = (enter(Cgroup(name)) for name in ("shop", "caller", "pool"))
        server = enter(ExactServer(serving.prefix, mode="epoll", reply_delay_us=2000))
        pool = enter(Waitress(pooled.prefix, module="waiting"))
        tacho = enter(Tacho({
            "window": "2s",
            "run_statistics": True,
            "probes": {"anatomy": {"enabled": True}},
            "targets": [target("shop", serving.path), target("caller", calling.path), target("pool", pooled.path)],
        }))  # fmt: skip
        self.instance = tacho.address
        self.prometheus = enter(
            Prometheus({"tacho": tacho.address}, rule_files=[dashboards.RULES, dashboards.ALERTS])
        )
        # Scrapes are under way before the load: a window that is not full makes rate() too low.
        seen = f'count(tacho_requests_total{{target=~"{"|".join(TARGETS)}"}}) == {len(TARGETS)}'
        wait_until(lambda: self.prometheus.query(seen), 30, "a scrape of every target", interval=0.1)
        enter(OpenLoop(pool.address, "http", "/20", connections=4)).start(rate=10, seconds=WINDOW, seed=1)
        # New connections come every four seconds, and within WINDOW also where the machine is three times as slow.
        load = enter(ExactLoad(
            server.address, calling.prefix, connections=CONNECTIONS, requests_per_connection=32
        ))  # fmt: skip
        self.started = time.time()
        self.at = self.prometheus.full_window("shop", WINDOW)
        self.counted = load.finish()
        self.client = json.loads(load.process.output.splitlines()[-1])
        self.server = server.finish()

    def values(self, selected: str) -> dict[str, str]:
        """What Grafana would put for the variables: regular expressions inside of strings."""
        instance = re.escape(self.instance).replace("\\", "\\\\")
        return {
            "job": "tacho", "instance": instance, "namespace": ".*", "pod": ".*", "container": ".*", "target": selected,
            # The whole run, which is what the client's numbers are about.
            "compare": "2s", "__rate_interval": f"{(self.at - self.started) * 1000:.0f}ms",
        }  # fmt: skip

    def ask(self, query: dashboards.Query, selected: str = "shop") -> list[tuple[dict, float]]:
        """Elements that are numbers."""
        found = self.prometheus.query(dashboards.filled_in(query.expr, self.values(selected)), self.at)
        return [(labels, value) for labels, value in found if not math.isnan(value)]

    def panel(self, title: str, ref: str = "A", dashboard: str = "tacho-target") -> float:
        """The one value of a panel."""
        queries = dashboards.panel_queries(dashboards.dashboards()[dashboard])
        (found,) = [query for query in queries if query.place.endswith(f": {title} {ref}")]
        ((_, value),) = self.ask(found)
        return value


@pytest.fixture(scope="module")
def scene():
    with contextlib.ExitStack() as stack:
        yield Scene(stack)


@pytest.mark.parametrize("name", dashboards.dashboards())
def test_every_panel_has_data(scene, name):
    empty = []
    for query in dashboards.panel_queries(dashboards.dashboards()[name]):
        if not scene.ask(query, ABOUT.get(query.place.partition(": ")[2], "shop")):
            empty.append(query.place)
    unexpected = [place for place in empty if place not in CONDITIONAL]
    assert not unexpected, "these have no data"


@pytest.mark.parametrize("name", dashboards.dashboards())
def test_every_variable_has_values(scene, name):
    found = {}
    for query, label in dashboards.variable_queries(dashboards.dashboards()[name]):
        matching = scene.prometheus.api(
            "series", **{"match[]": dashboards.filled_in(query.expr, scene.values("shop")), "start": scene.at - WINDOW}
        )
        found[query.place.rpartition(" ")[2]] = {series[label] for series in matching if label in series}
        if query.place not in CONDITIONAL:
            assert found[query.place.rpartition(" ")[2]], query.place
    assert (found["job"], found["instance"]) == ({"tacho"}, {scene.instance})
    if "target" in found:
        assert found["target"] == TARGETS


def test_every_recording_rule_has_data(scene):
    groups = scene.prometheus.api("rules")["groups"]
    unwell = [rule["name"] for group in groups for rule in group["rules"] if rule["health"] != "ok"]
    assert not unwell
    for rule in dashboards.rules(dashboards.RULES):
        recorded = scene.prometheus.query(f'{rule["record"]}{{target="shop"}}', scene.at)
        assert recorded and not math.isnan(recorded[0][1]), rule["record"]


def test_alerts_fire_for_what_is_the_case(scene):
    """An alert that is silent asks for series that are there."""
    silent = set()
    for query in dashboards.rule_queries(dashboards.ALERTS):
        strict, eased = EASED.get(query.place, ("", ""))
        assert strict in query.expr
        if not scene.ask(dataclasses.replace(query, expr=query.expr.replace(strict, eased))):
            silent.add(query.place)
    assert silent == set(SILENT)
    selectors = set()
    for query in dashboards.rule_queries(dashboards.ALERTS):
        selectors |= set(re.findall(r"[a-z_:][\w:]*\{[^}]*\}", query.expr))
    assert len(selectors) > 10
    empty = [selector for selector in selectors if not scene.prometheus.query(selector, scene.at)]
    assert not empty, "these series are not there"


def test_headline_panels_show_what_the_client_saw(scene):
    latency = scene.client["latency_seconds"]
    mean = latency["sum"] / scene.counted.requests
    assert scene.panel("Rate") == pytest.approx(scene.counted.rate, rel=0.05)
    # The client's clock includes the way there and back.
    assert scene.panel("Duration", "D") == pytest.approx(mean, rel=0.05)
    assert latency["p50"] / 2 < scene.panel("Duration", "A") < latency["p50"] * 2
    assert scene.panel("In flight") in (0, 1)


def test_queue_share_is_what_client_and_server_saw(scene):
    """What the server did not work on a request, of the client's time, was waiting: 63 of 64 parts, or a bit less
    when the machine is busy with other things."""
    service = scene.server["service_seconds"] / scene.server["requests"]
    latency = scene.client["latency_seconds"]["sum"] / scene.counted.requests
    assert scene.panel("Where the time goes", "B") == pytest.approx(service, rel=0.05)
    assert scene.panel("Queue share") == pytest.approx(1 - service / latency, rel=0.05)
    assert 0.85 < scene.panel("Queue share") < 0.99


def test_counts_that_are_never_empty_count(scene):
    """They fall back to 0, so that having data says nothing."""
    shown = {
        title: scene.panel(title, dashboard="tacho-overview")
        for title in ("Targets", "Saturated targets", "Exporters that do not answer")
    }
    assert shown == {"Targets": len(TARGETS), "Saturated targets": 1, "Exporters that do not answer": 0}
    # Lq = 63: ρ = 0.985. The client is busy in between, so that a little less wait.
    assert 0.9 < scene.panel("Saturation") < 0.99
    for title in ("Hooks without a method", "Events lost", "Configurations refused", "Collectors that fail"):
        assert scene.panel(title, dashboard="tacho-health") == 0, title


def test_headline_rules_show_the_same(scene):
    def recorded(name: str) -> float:
        ((_, value),) = scene.prometheus.query(f'instance_target:{name}{{target="shop"}}', scene.at)
        return value

    share, duration = scene.panel("Queue share"), scene.panel("Duration", "D")
    assert recorded("tacho_request_queue_per_duration:ratio_rate5m") == pytest.approx(share, rel=0.05)
    assert recorded("tacho_request_duration_seconds:mean5m") == pytest.approx(duration, rel=0.05)


def test_quickstart_with_prometheus_scrapes_and_loads_the_rules():
    if BUILD.resolve() != (REPOSITORY / "build" / "release").resolve():
        pytest.skip(f"quickstart builds build/release, and {BUILD} is under test")
    address = f"127.0.0.1:{net.free_port()}"
    command = [REPOSITORY / "deploy" / "quickstart", "--with-prometheus", "--listen", address]
    with Process(command, stop_signal=signal.SIGINT) as quickstart:
        where = quickstart.wait_for_line(r"^Prometheus: +http://(\S+)/alerts", timeout=300).group(1)

        def api(path: str) -> dict:
            return json.loads(net.exchange(where, f"/api/v1/{path}")[2])["data"]

        def scraped() -> bool:
            """Is tacho up, and has every rule been evaluated once?"""
            rules = [rule for group in api("rules")["groups"] for rule in group["rules"]]
            up = [(target["health"], target["scrapeUrl"]) for target in api("targets")["activeTargets"]]
            return up == [("up", f"http://{address}/metrics")] and all(rule["health"] == "ok" for rule in rules)

        wait_until(scraped, 30, "a scrape of tacho, and all rules evaluated", interval=0.1)
        loaded = {rule["name"] for group in api("rules")["groups"] for rule in group["rules"]}
        written = [*dashboards.rules(dashboards.RULES), *dashboards.rules(dashboards.ALERTS)]
        assert loaded == {rule.get("record") or rule["alert"] for rule in written}
        quickstart.wait_for_line("Ctrl-C ends it", timeout=30)
        assert quickstart.stop() == 130, quickstart.output
    with pytest.raises(OSError):
        net.exchange(where, "/-/ready")
