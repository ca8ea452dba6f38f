"""The committed examples for autoscalers: their queries as prometheus-adapter and KEDA ask them, and their objects."""

import re

import yaml

from support import kustomize

ROOT = kustomize.ROOT / "autoscaling"
METRIC = "tacho_saturation_ratio"


def hpa() -> dict:
    return yaml.safe_load((ROOT / "hpa/hpa.yaml").read_text())


def scaled_object() -> dict:
    return yaml.safe_load((ROOT / "keda/scaled-object.yaml").read_text())


def adapter_query(namespace: str, pods: list[str]) -> str:
    """As prometheus-adapter fills its template in for these pods."""
    (rule,) = yaml.safe_load((ROOT / "hpa/adapter-rules.yaml").read_text())["rules"]
    query = rule["metricsQuery"]
    matchers = f'namespace="{namespace}",pod=~"{"|".join(pods)}"'
    for placeholder, value in {"GroupBy": "namespace, pod", "Series": METRIC, "LabelMatchers": matchers}.items():
        if f"<<.{placeholder}>>" not in query:
            raise ValueError(f"the rule has no {placeholder}")
        query = query.replace(f"<<.{placeholder}>>", value)
    if "<<" in query:
        raise ValueError(f"not filled in: {query}")
    return query


def keda_query(deployment: str = "api") -> str:
    """Of the example's Deployment, or with another one's name in its place."""
    (trigger,) = scaled_object()["spec"]["triggers"]
    return re.sub(r'pod=~"api-', f'pod=~"{deployment}-', trigger["metadata"]["query"])
