"""Lets other programs judge the expositions that `metrics_exposition_sample` prints.

Usage: exposition_judges.py promtool|openmetrics SAMPLE_PROGRAM
Exit code 77 means that the judge is not installed.
"""

import math
import shutil
import subprocess
import sys

SEEDS = range(6)
SKIPPED = 77


def sample(program, form, seed):
    return subprocess.run([program, form, str(seed)], check=True, stdout=subprocess.PIPE).stdout


def promtool(text):
    """What `promtool check metrics` has to say, and its exit code."""
    result = subprocess.run(["promtool", "check", "metrics"], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return result.returncode, result.stdout.decode(errors="replace").strip()


def judge_with_promtool(program):
    if shutil.which("promtool") is None:
        print("skipped: promtool is not installed (Debian: apt-get install prometheus)")
        return SKIPPED
    code, said = promtool(b'# TYPE a counter\na{b="\\x"} 1\n')
    assert code != 0, f"promtool accepts a bad escape: {said}"
    for seed in SEEDS:
        code, said = promtool(sample(program, "text", seed))
        assert code == 0 and not said, f"promtool on seed {seed}: exit {code}\n{said}"
    print(f"promtool is silent on {len(SEEDS)} expositions")
    return 0


def comparable(families):
    """All samples by name and labels; NaN made equal to itself."""
    result = {}
    for family in families:
        for one in family.samples:
            key = (one.name, tuple(sorted(one.labels.items())))
            assert key not in result, f"twice: {key}"
            result[key] = "NaN" if math.isnan(one.value) else float(one.value)
    return result


def judge_with_parsers(program):
    try:
        from prometheus_client.openmetrics import parser as openmetrics
        from prometheus_client import parser as text
    except ImportError:
        print("skipped: prometheus_client is not installed (Debian: apt-get install python3-prometheus-client)")
        return SKIPPED

    def parse(module, exposition):
        return list(module.text_string_to_metric_families(exposition.decode("utf-8", errors="strict")))

    for seed in SEEDS:
        exposition = sample(program, "openmetrics", seed)
        families = parse(openmetrics, exposition)
        types = {family.name: family.type for family in families}
        units = {family.name: family.unit for family in families}
        assert types["tacho_socket_bytes"] == "counter" and units["tacho_socket_bytes"] == "bytes"
        assert types["tacho_build_info"] == "gauge"
        assert "unknown" not in types.values(), types
        documentation = {family.name: family.documentation for family in families}
        assert documentation["tacho_socket_bytes"] == 'Payload "bytes",\nback\\slash.'
        assert documentation["tacho_inter_syscall_cv2"].endswith("over 10s.")

        found = comparable(families)
        targets = {dict(labels).get("target") for _, labels in found} - {None}
        assert 'back\\slash "quoted"\nnew line {brace} a=b,c} # x' in targets, targets
        assert "bytes \ufffd\ufffd nul \0 end\r" in targets, targets
        in_text = comparable(parse(text, sample(program, "text", seed)))
        assert found == in_text, set(found.items()) ^ set(in_text.items())
        assert len(found) > 500

        for broken in (exposition[: -len(b"# EOF\n")], exposition.replace(b'le="+Inf"', b'le="99.0"', 1)):
            try:
                parse(openmetrics, broken)
            except ValueError:
                continue
            raise AssertionError("the parser accepts a broken exposition")
    print(f"the OpenMetrics parser accepts {len(SEEDS)} expositions and finds the series of the text form")
    return 0


if __name__ == "__main__":
    judges = {"promtool": judge_with_promtool, "openmetrics": judge_with_parsers}
    sys.exit(judges[sys.argv[1]](sys.argv[2]))
