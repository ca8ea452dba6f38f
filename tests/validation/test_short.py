"""The short form of the validation: two servers, three levels, generous bounds, so that a regression of truth is seen."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support.privilege import why_not  # noqa: E402
from validation import accuracy, causes  # noqa: E402
from validation.levels import read  # noqa: E402
from validation.rig import stay_beside_the_client, two_cpus  # noqa: E402
from validation.subjects import SUBJECTS  # noqa: E402
from validation.sweep import Results, sweep  # noqa: E402

_reason = why_not() or (None if two_cpus() else "needs two CPUs, one for the server alone")
pytestmark = pytest.mark.skipif(_reason is not None, reason=_reason or "")

LEVELS = 3


@pytest.fixture(scope="module", params=["redis", "nginx"])
def levels(request, tmp_path_factory):
    file = tmp_path_factory.mktemp("sweep") / f"{request.param}.csv"
    stay_beside_the_client()
    sweep(SUBJECTS[request.param], Results(file, resume=False), LEVELS, repeats=1, seconds=3, say=print)
    found = read(file)
    assert [level.load for level in found] == [0.1, 0.7, 1.3]
    return found


def test_turns_are_the_clients_requests(levels):
    for level in levels:
        assert level.client("errors") == 0 and level.client("completed") > 100
    turns = accuracy.turns(levels)
    assert turns.r2_equal > 0.999 and turns.mean_error < 0.005, turns


def disturbance(level) -> str:
    """What other than the server and its load decided about times; empty if little did. Counts hold all the same."""
    elapsed, seconds = level.client("elapsed"), level.seconds
    shares = {
        "the client worked": (level.client("cpu_seconds") / elapsed, 0.8),
        "the client was kept from its CPU": (level.client("run_queue_seconds") / elapsed, 0.05),
        "others worked on the server's CPU": ((level.truth("busy_seconds") - level.truth("cpu_seconds")) / seconds, 0.1),
        "the hypervisor took a CPU away": (level.truth("stolen_seconds") / seconds, 0.02),
    }
    return ", ".join(f"{what} {100 * share:.0f} % of the time" for what, (share, limit) in shares.items() if share > limit)


def undisturbed(levels) -> list:
    """Those whose times say something about the server; skips the test if too few are left."""
    found = [level for level in levels if not disturbance(level)]
    if len(found) < 2:
        pytest.skip(f"the machine was not the server's: {'; '.join(filter(None, map(disturbance, levels)))}")
    return found


def test_rates_between_two_scrapes(levels):
    """As Prometheus sees them; the scrapes do not stop the requests."""
    quiet = undisturbed(levels)
    for rate in (accuracy.windowed_turns(quiet), accuracy.observed(quiet)):
        assert rate.r2_fit > 0.99 and rate.mean_error < 0.05, rate


def test_latencies_follow_the_clients(levels):
    """A quantile lies within a bucket, which is up to 25 % wide; a client that is kept from its CPU sees replies late."""
    for level in levels:
        seen, clients = level.quantile(0.5), level.client("round_trip_p50")
        assert seen < 1.25 * clients, (level.load, seen, clients)
    for level in undisturbed(levels):
        seen, clients = level.quantile(0.5), level.client("round_trip_p50")
        assert 0.3 * clients - 100e-6 < seen, (level.load, seen, clients)


def test_requests_queue_under_overload(levels):
    queued = [level.tacho("tacho_request_queue_seconds_sum") / level.seconds for level in levels]
    backlog = levels[-1].client("backlog")
    if backlog < 0.1 * levels[-1].client("offered"):
        pytest.skip(f"no overload: the machine has become faster since the capacity was measured, backlog {backlog:.0f}")
    if reasons := disturbance(levels[0]) or disturbance(levels[-1]):
        pytest.skip(f"the machine was not the server's: {reasons}")
    assert queued[0] < 2 < 10 < queued[-1], "mean number of requests that wait to be read"


@pytest.mark.parametrize("server, fault", [("waitress", "lock holder"), ("haproxy", "slow dependency")])
def test_the_cause_is_named(server, fault):
    (trial,) = causes.trials(server, 1, [fault])
    print(trial.sentence)
    assert trial.right, trial
