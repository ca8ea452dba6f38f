"""What /metrics says is judged by others: promtool, Prometheus' Python parsers, HTTP."""

import gzip
import subprocess

import pytest

from support.cgroup import Cgroup
from support.clients import exact
from support.exposition import OPENMETRICS, TEXT
from support.servers import ExactServer
from support.tacho import Tacho, target
from support.waiting import wait_until

PROMETHEUS_2_42 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)


ODD_TEAM = 'back\\slash "quote" {=} #'


@pytest.fixture(scope="module")
def tacho():
    """tacho with a target that answered 23 requests and an idle one with a label that needs escaping."""
    with Cgroup("busy") as busy, Cgroup("odd") as odd:
        config = {"targets": [target("busy", busy.path), target("odd", odd.path, labels={"team": ODD_TEAM})]}
        with ExactServer(busy.prefix) as server, Tacho(config) as tacho:
            tacho.wait_for_target("odd")
            exact(server.address, 23)
            tacho.settled("busy")
            # What is computed over a window appears with its first sample behind the requests.
            wait_until(lambda: tacho.scrape().has("tacho_inter_syscall_cv2", target="busy"), 5, "values over a window")
            yield tacho


def test_promtool_is_silent(tacho):
    checked = subprocess.run(["promtool", "check", "metrics"], input=tacho.text(), capture_output=True, text=True)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_openmetrics_is_valid_and_says_the_same(tacho):
    text, openmetrics = tacho.scrape(), tacho.scrape_openmetrics()
    assert text.get("tacho_requests_total", target="busy") == 23
    assert openmetrics.get("tacho_requests_total", target="busy") == 23
    assert set(text.values) == set(openmetrics.values)


def test_labels_survive_escaping(tacho):
    for samples in (tacho.scrape(), tacho.scrape_openmetrics()):
        teams = {labels.get("team") for labels, _ in samples.all("tacho_requests_total", target="odd")}
        assert teams == {ODD_TEAM}


def test_series_exist_from_the_start_at_zero(tacho):
    samples = tacho.scrape()
    assert samples.get("tacho_requests_total", target="odd") == 0
    for direction in ("send", "receive"):
        assert samples.get("tacho_socket_operations_total", target="odd", direction=direction) == 0
    assert samples.get("tacho_request_duration_seconds_count", target="odd") == 0


@pytest.mark.parametrize(
    "accept, answer",
    [
        (None, "text/plain; version=0.0.4; charset=utf-8"),
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        (TEXT, "text/plain; version=0.0.4; charset=utf-8"),
        ("image/png", "text/plain; version=0.0.4; charset=utf-8"),
        (OPENMETRICS, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        (PROMETHEUS_2_42, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        (f"{OPENMETRICS};q=0.1,{TEXT};q=0.9", "text/plain; version=0.0.4; charset=utf-8"),
        (f"{OPENMETRICS};q=0,{TEXT};q=0.1", "text/plain; version=0.0.4; charset=utf-8"),
    ],
)
def test_negotiation(tacho, accept, answer):
    status, headers, body = tacho.http("/metrics", headers={"Accept": accept} if accept else {})
    assert (status, headers["Content-Type"]) == (200, answer)
    assert body.endswith(b"# EOF\n") == answer.startswith("application/openmetrics")


@pytest.mark.parametrize("accept_encoding, packed", [("gzip", True), ("gzip;q=0", False), (None, False), ("br, gzip", True)])
def test_gzip_only_when_asked_for(tacho, accept_encoding, packed):
    _, headers, body = tacho.http("/metrics", headers={"Accept-Encoding": accept_encoding} if accept_encoding else {})
    assert headers.get("Content-Encoding") == ("gzip" if packed else None)
    text = gzip.decompress(body) if packed else body
    assert b"tacho_requests_total" in text


def test_head_has_no_body(tacho):
    status, headers, body = tacho.http("/metrics", method="HEAD")
    assert (status, body) == (200, b"")
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")


@pytest.mark.parametrize("path, status", [("/", 200), ("/targets", 200), ("/-/healthy", 200), ("/-/ready", 200), ("/metricsxyz", 404), ("/x", 404)])
def test_paths(tacho, path, status):
    assert tacho.http(path)[0] == status


def test_landing_page_links_to_the_metrics_and_the_targets(tacho):
    page = tacho.http("/")[2].decode()
    assert all(f'href="./{place}"' in page for place in ("metrics", "targets"))


def test_every_hook_is_attached_and_nothing_was_lost(tacho):
    samples = tacho.scrape()
    attached = samples.all("tacho_probe_attached")
    assert {labels["probe"] for labels, _ in attached} >= {"socket", "poll"}
    assert all(value == 1 for _, value in attached), attached
    counted = samples.all("tacho_lost_events_total")
    lost = [(labels, value) for labels, value in counted if value != 0 and labels["reason"] != "skipped"]
    assert counted and not lost, lost
    assert all(value == 1 for _, value in samples.all("tacho_scrape_collector_success"))
