"""What queries give on series that a test makes up, evaluated by promtool."""

import re

import yaml

from support.process import run


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
