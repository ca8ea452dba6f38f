"""The autoscaling examples: their queries are right, ask for series that tacho has, and each says how fast it scales."""

import json
import re

import pytest
import yaml

from support import kustomize
from support.paths import REPOSITORY
from support.process import run

ROOT = kustomize.ROOT / "autoscaling"
# How prometheus-adapter fills its template in.
TEMPLATE = {"<<.GroupBy>>": "namespace, pod", "<<.Series>>": "tacho_saturation_ratio",
            "<<.LabelMatchers>>": 'namespace="shop", pod=~"api-1|api-2"'}  # fmt: skip


def adapter_query() -> str:
    (rule,) = yaml.safe_load((ROOT / "hpa/adapter-rules.yaml").read_text())["rules"]
    query = rule["metricsQuery"]
    for placeholder, value in TEMPLATE.items():
        assert placeholder in query
        query = query.replace(placeholder, value)
    assert "<<" not in query
    return query


def scaled_object() -> dict:
    return yaml.safe_load((ROOT / "keda/scaled-object.yaml").read_text())


def keda_query() -> str:
    (trigger,) = scaled_object()["spec"]["triggers"]
    return trigger["metadata"]["query"]


def answers(query: str, tmp_path, series: dict[str, str]) -> list[tuple[dict, float]]:
    """What a query gives on series, evaluated by promtool: what it did not expect is in its complaint."""
    test = {
        "rule_files": [],
        "tests": [{
            "interval": "15s",
            "input_series": [{"series": name, "values": values} for name, values in series.items()],
            "promql_expr_test": [{"expr": query, "eval_time": "5m", "exp_samples": [{"labels": "none", "value": -1}]}],
        }],
    }  # fmt: skip
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump(test))
    said = run(["promtool", "test", "rules", file], check=False)
    got = re.search(r"^ +got: (.*)$", said, re.MULTILINE)
    assert got, said
    found = re.findall(r"\{([^}]*)\} ([-+.0-9E]+)", got[1])
    return [(dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value)) for labels, value in found]


SERIES = {
    'tacho_saturation_ratio{namespace="shop",pod="api-1",container="api",target="a"}': "0.5x20",
    'tacho_saturation_ratio{namespace="shop",pod="api-1",container="cache",target="b"}': "0.9x20",
    'tacho_saturation_ratio{namespace="shop",pod="api-2",container="api",target="c"}': "0.3x20",
    'tacho_saturation_ratio{namespace="shop",pod="api-2",container="spin",target="d"}': "1x20",
    'tacho_saturation_ratio{namespace="shop",pod="db-1",container="db",target="e"}': "1x20",
    'tacho_saturation_ratio{namespace="other",pod="api-1",container="api",target="f"}': "1x20",
    'tacho_target_condition{namespace="shop",pod="api-2",container="spin",target="d",condition="busy_polling"}': "1x20",
    'tacho_target_condition{namespace="shop",pod="api-1",container="cache",target="b",condition="busy_polling"}': "0x20",
}


def test_adapter_gives_each_pod_its_most_saturated_valid_container(tmp_path):
    found = answers(adapter_query(), tmp_path, SERIES)
    assert sorted((labels["pod"], value) for labels, value in found) == [("api-1", 0.9), ("api-2", 0.3)]


def test_keda_gets_one_number_to_divide_by_the_pods(tmp_path):
    assert answers(keda_query(), tmp_path, SERIES) == [({}, pytest.approx(1.2))]


def test_names_and_conditions_are_tachos():
    documented = (REPOSITORY / "exporter" / "METRICS.md").read_text()
    for query in (adapter_query(), keda_query()):
        names = set(re.findall(r"\btacho_\w+", query))
        assert names == {"tacho_saturation_ratio", "tacho_target_condition"}
        assert all(name in documented for name in names)


def test_both_have_the_same_bounds_and_say_how_fast():
    hpa = yaml.safe_load((ROOT / "hpa/hpa.yaml").read_text())["spec"]
    keda = scaled_object()["spec"]
    assert (hpa["minReplicas"], hpa["maxReplicas"]) == (keda["minReplicaCount"], keda["maxReplicaCount"])
    for behavior in (hpa["behavior"], keda["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]):
        up, down = behavior["scaleUp"], behavior["scaleDown"]
        assert up["stabilizationWindowSeconds"] < down["stabilizationWindowSeconds"]
        assert up["policies"] and down["policies"]
    (trigger,) = keda["triggers"]
    assert trigger["metadata"]["ignoreNullValues"] == "false"
    assert trigger["metricType"] == "AverageValue", "KEDA's fallback needs it"
    (metric,) = hpa["metrics"]
    assert metric["pods"]["target"]["averageValue"] == f"{float(trigger['metadata']['threshold']) * 1000:.0f}m"
    assert json.dumps(metric["pods"]["metric"]) == '{"name": "tacho_saturation_ratio"}'
