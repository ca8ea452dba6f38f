"""The autoscaling examples: their queries are right, ask for series that tacho has, and each says how fast it scales.

Their figures on real servers: tests/e2e/test_autoscaling.py.
"""

import json
import re

import pytest

from support import autoscaling, promtool
from support.hpa import SYNC_SECONDS, Autoscaler
from support.paths import REPOSITORY

A, B = "api-6c5d-abcde", "api-6c5d-fghij"
CONDITIONS = json.loads((REPOSITORY / "grafana" / "conditions.json").read_text())
HIDING = [condition["name"] for condition in CONDITIONS if "tacho_saturation_ratio" in condition["invalidates"]]
HARMLESS = [condition["name"] for condition in CONDITIONS if condition["name"] not in HIDING]


def container(pod: str, ratio: float, *holding: str, error: float = 0.03, namespace: str = "shop", name: str = "api",
              sidecar: str = "") -> dict[str, str]:  # fmt: skip
    """Series of a container of which these conditions hold; of a sidecar's only the container id is known."""
    labels = {"instance": "node", "target": f"{namespace}/{name}", "namespace": namespace, "pod": pod}
    labels |= {"target": "pod", "container_id": sidecar} if sidecar else {"container": name}
    text = ",".join(f'{label}="{value}"' for label, value in labels.items())
    series = {
        f"tacho_saturation_ratio{{{text}}}": f"{ratio}x20",
        f"tacho_saturation_ratio_error{{{text}}}": f"{error}x20",
    }
    for condition in HIDING + HARMLESS:
        series[f'tacho_target_condition{{{text},condition="{condition}"}}'] = f"{int(condition in holding)}x20"
    return series


def by_pod(tmp_path, *containers: dict) -> dict[str, float]:
    """What the adapter tells of each pod."""
    series = {name: values for one in containers for name, values in one.items()}
    return {labels["pod"]: value for labels, value in promtool.answers(autoscaling.adapter_query("shop", [A, B]), tmp_path, series)}


def total(tmp_path, *containers: dict) -> float:
    """What KEDA is told."""
    series = {name: values for one in containers for name, values in one.items()}
    ((labels, value),) = promtool.answers(autoscaling.keda_query(), tmp_path, series)
    assert labels == {}
    return value


def test_adapter_gives_each_pod_its_most_saturated_container(tmp_path):
    mine = [container(A, 0.5), container(A, 0.9, name="cache"), container(B, 0.3)]
    others = [container("db-1", 1), container(A, 1, namespace="other")]
    assert by_pod(tmp_path, *mine, *others) == {A: 0.9, B: 0.3}


def test_an_idle_pod_has_a_value(tmp_path):
    """Few samples, no polls: what says nothing about saturation leaves no pod out."""
    assert {"few_samples", "no_poll", "busy_polling"} <= set(HARMLESS)
    assert by_pod(tmp_path, container(A, 0.004, *HARMLESS)) == {A: 0.004}
    assert total(tmp_path, container(A, 0.004, *HARMLESS)) == 0.004


@pytest.mark.parametrize("condition", HIDING)
def test_what_hides_load_holds_the_number_and_what_is_seen_of_it_grows(tmp_path, condition):
    hidden, seen = container(A, 0.2, condition), container(B, 0.95, condition)
    assert by_pod(tmp_path, hidden, seen) == {B: 0.95}
    assert total(tmp_path, hidden, seen) == pytest.approx(0.7 + 0.95)


def test_the_first_second_of_a_container_is_left_out(tmp_path):
    assert by_pod(tmp_path, container(A, 1, error=0.29), container(B, 1, error=0.15)) == {B: 1}
    assert total(tmp_path, container(A, 0, error=0.29), container(B, 1, error=0.15)) == pytest.approx(1.7)


def test_a_sidecars_pod_is_as_saturated_as_its_server_and_the_pause_container_changes_nothing(tmp_path):
    """All of its containers have the pod's labels; only container_id tells them apart."""
    pause = container(A, 0, "few_samples", sidecar="000")
    server = container(A, 0.96, "few_samples", sidecar="111")
    assert by_pod(tmp_path, pause, server) == {A: 0.96}
    assert total(tmp_path, pause, server) == 0.96
    # What hides load of one container says nothing about another one.
    assert by_pod(tmp_path, container(A, 0, HIDING[0], sidecar="000"), container(A, 0.5, sidecar="111")) == {A: 0.5}


def test_keda_gets_one_number_of_the_deployments_own_pods(tmp_path):
    others = [container("api-gateway-6c5d-abcde", 1), container("api-0", 1), container(A, 1, namespace="other")]
    assert total(tmp_path, container(A, 0.9), container(B, 0.3), *others) == pytest.approx(1.2)


def test_names_and_conditions_are_tachos():
    documented = (REPOSITORY / "exporter" / "METRICS.md").read_text()
    for query in (autoscaling.adapter_query("shop", [A, B]), autoscaling.keda_query()):
        names = set(re.findall(r"\btacho_\w+", query))
        assert names == {"tacho_saturation_ratio", "tacho_saturation_ratio_error", "tacho_target_condition"}
        assert all(f"| `{name}` |" in documented for name in names)
        assert re.findall(r'condition=~"([^"]*)"', query) == ["|".join(HIDING)]


def test_both_have_the_same_bounds_and_say_how_fast():
    hpa = autoscaling.hpa()["spec"]
    keda = autoscaling.scaled_object()["spec"]
    assert (hpa["minReplicas"], hpa["maxReplicas"]) == (keda["minReplicaCount"], keda["maxReplicaCount"])
    assert hpa["behavior"] == keda["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    up, down = hpa["behavior"]["scaleUp"], hpa["behavior"]["scaleDown"]
    assert up["stabilizationWindowSeconds"] < down["stabilizationWindowSeconds"]
    assert up["policies"] and down["policies"]
    assert "fallback" not in keda, "a fixed number scales an idle service up"
    (trigger,) = keda["triggers"]
    assert trigger["metadata"]["ignoreNullValues"] == "false"
    assert trigger["metricType"] == "AverageValue", "the query is a sum"
    (metric,) = hpa["metrics"]
    assert metric["pods"]["target"]["averageValue"] == f"{float(trigger['metadata']['threshold']) * 1000:.0f}m"
    assert json.dumps(metric["pods"]["metric"]) == '{"name": "tacho_saturation_ratio"}'


def autoscaler() -> Autoscaler:
    return Autoscaler.of(autoscaling.hpa())


def replay(hours: list[float], known=lambda second, pod: True, by_sum: bool = False) -> list[int]:
    """The number of pods at the end of each hour; `hours` has the demand of each, in pods that it keeps busy."""
    scaler, pods, ends = autoscaler(), 2, []
    for second in range(0, 3600 * len(hours), SYNC_SECONDS):
        ratio = min(1.0, hours[second // 3600] / pods)
        values = {str(pod): ratio if known(second, pod) else None for pod in range(pods)}
        if by_sum:
            pods = scaler.by_sum(second, pods, sum(0.7 if value is None else value for value in values.values()))
        else:
            pods = scaler.by_pods(second, values)
        if (second + SYNC_SECONDS) % 3600 == 0:
            ends.append(pods)
    return ends


DAY = [0.02] * 7 + [1.2, 2.8, 5.6, 5.6, 7, 7, 9.8, 9.8, 7, 5.6, 5.6, 2.8, 1.2] + [0.02] * 4


@pytest.mark.parametrize("by_sum", [False, True])
def test_a_day_is_followed_and_ends_at_the_minimum(by_sum):
    ends = replay(DAY, by_sum=by_sum)
    for hour, (demand, pods) in enumerate(zip(DAY, ends, strict=True)):
        assert pods >= max(2, demand / 0.78), f"hour {hour}: {pods} pods for {demand}"
    assert ends[:7] == [2] * 7 and ends[-1] == 2


@pytest.mark.parametrize("by_sum", [False, True])
def test_an_idle_service_stays_at_its_minimum_whatever_is_not_known(by_sum):
    assert replay([0.02] * 3, by_sum=by_sum) == [2, 2, 2]
    assert replay([0.02] * 3, known=lambda second, pod: False, by_sum=by_sum) == [2, 2, 2]
    assert replay([0.02] * 3, known=lambda second, pod: pod > 0 or second % 600 > 60, by_sum=by_sum) == [2, 2, 2]


def test_a_burst_of_ten_seconds_adds_no_pod_and_overload_does_within_half_a_minute():
    scaler, pods, numbers = autoscaler(), 2, {}
    for second in range(0, 211, SYNC_SECONDS):
        busy = second == 60 or second >= 180
        pods = numbers[second] = scaler.by_pods(second, dict.fromkeys(range(pods), 0.97 if busy else 0.5))
    assert {number for second, number in numbers.items() if second <= 180} == {2}
    assert numbers[195] == 3, "0.97 / 0.7 · 2, rounded up"


def test_without_prometheus_the_number_stays():
    scaler = autoscaler()
    assert scaler.by_sum(0, 7, None) == 7 and scaler.by_pods(15, dict.fromkeys("abcdefg")) == 7
