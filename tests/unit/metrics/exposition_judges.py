"""Lets other programs judge the expositions that `metrics_exposition_sample` prints.

Usage: exposition_judges.py promtool|openmetrics|protobuf SAMPLE_PROGRAM
Exit code 77 means that the judge is not installed.
"""

import math
import pathlib
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


def exemplars(families):
    """(labels of its bucket, labels, value, Unix time) of every exemplar; each has to be in its bucket."""
    found = []
    for family in families:
        below = 0.0
        for one in family.samples:
            bound = float(one.labels.get("le", "0"))
            if one.exemplar:
                assert family.name == "tacho_request_duration_seconds" and one.name.endswith("_bucket"), one
                assert below < one.exemplar.value <= bound, (below, one)
                assert sum(map(len, [*one.exemplar.labels.keys(), *one.exemplar.labels.values()])) <= 128
                found.append((one.labels, one.exemplar.labels, one.exemplar.value, float(one.exemplar.timestamp)))
            below = bound
    return found


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
        with_exemplars = exemplars(families)
        assert 3 * 2 <= len(with_exemplars) <= 3 * 6, with_exemplars
        assert any(labels["part"] == '"\\\n\ufffd' for _, labels, _, _ in with_exemplars), "the first one is the longest of its bucket"
        assert all(labels["share"] == "0.83" and at >= 1.79e9 for _, labels, _, at in with_exemplars)
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


def flat(families, protobuf):
    """Samples of protobuf's families, as comparable() has those of the text form; native buckets are left out."""
    result = {}

    def add(name, labels, value):
        key = (name, tuple(sorted(labels.items())))
        assert key not in result, f"twice: {key}"
        result[key] = "NaN" if math.isnan(value) else float(value)

    for family in families:
        kind = protobuf.TYPES[family.type]
        for metric in family.metric:
            labels, value = protobuf.labels_of(metric), getattr(metric, kind)
            if kind in ("counter", "gauge", "untyped"):
                add(family.name, labels, value.value)
                continue
            add(f"{family.name}_sum", labels, value.sample_sum)
            add(f"{family.name}_count", labels, value.sample_count)
            for quantile in getattr(value, "quantile", []):
                add(family.name, labels | {"quantile": repr(quantile.quantile)}, quantile.value)
            buckets = getattr(value, "bucket", [])
            if buckets and not math.isinf(buckets[-1].upper_bound):  # implied, says the format
                add(f"{family.name}_bucket", labels | {"le": "+Inf"}, value.sample_count)
            for bucket in buckets:
                bound = "+Inf" if math.isinf(bucket.upper_bound) else repr(bucket.upper_bound)
                add(f"{family.name}_bucket", labels | {"le": bound}, bucket.cumulative_count)
    return result


def same(found, expected):
    """Sums beyond 2^53 ns may differ in the last place; all else is equal."""
    names = found.keys() ^ expected.keys()
    assert not names, sorted(names)[:5]
    for key, value in expected.items():
        assert value == found[key] or math.isclose(value, found[key], rel_tol=3e-16), (key, value, found[key])


def judge_with_protobuf(program):
    sys.path.append(str(pathlib.Path(__file__).parents[2]))
    try:
        from prometheus_client import parser as text
        from support import protobuf
    except ImportError as error:
        print(f"skipped: {error} (Debian: apt-get install python3-prometheus-client python3-protobuf)")
        return SKIPPED

    def in_openmetrics(seed):
        from prometheus_client.openmetrics import parser as openmetrics

        exposition = sample(program, "openmetrics", seed).decode()
        return exemplars(openmetrics.text_string_to_metric_families(exposition))

    checked = 0
    for seed in SEEDS:
        in_text = comparable(text.text_string_to_metric_families(sample(program, "text", seed).decode()))
        both = protobuf.families(sample(program, "protobuf", seed))
        same(flat(both, protobuf), in_text)
        classic = protobuf.families(sample(program, "classic", seed))
        same(flat(classic, protobuf), in_text)
        native = protobuf.families(sample(program, "native", seed))
        same(flat(native, protobuf), {key: value for key, value in in_text.items() if not key[0].endswith("_bucket")})

        assert {family.name: family.unit for family in both}["tacho_socket_bytes_total"] == "bytes"
        in_buckets = [
            protobuf.exemplar_of(bucket.exemplar)
            for family in classic for metric in family.metric for bucket in metric.histogram.bucket
            if bucket.HasField("exemplar")
        ]  # fmt: skip
        in_native = []
        for family, alone in zip(both, native, strict=True):
            assert family.metric, f"{family.name} has no samples"
            for metric, same_metric in zip(family.metric, alone.metric, strict=True):
                created = metric.counter.created_timestamp if metric.HasField("counter") else metric.histogram.created_timestamp
                if family.type in (0, 4) and "peer" not in protobuf.labels_of(metric):
                    assert (created.seconds, created.nanos) == (1_234_567_890, 123_456_789), family.name
                else:
                    assert not created.seconds, f"{family.name}: when it was 0 is not known"
                histogram = metric.histogram
                beside_native = [protobuf.exemplar_of(b.exemplar) for b in histogram.bucket if b.HasField("exemplar")]
                assert beside_native == [protobuf.exemplar_of(e) for e in histogram.exemplars][-1:], "the longest alone"
                in_native += [protobuf.exemplar_of(e) for e in same_metric.histogram.exemplars]
                if not histogram.zero_threshold:
                    continue
                assert histogram.zero_threshold == 2.0**-20
                assert histogram.schema == (4 if family.name == "tacho_request_duration_seconds" else 2)
                assert protobuf.native_buckets(histogram) == protobuf.native_buckets(same_metric.histogram)
                # Every classic bucket holds exactly the native ones below it: nothing was split or moved.
                for bucket in histogram.bucket:
                    assert protobuf.below(histogram, bucket.upper_bound) == bucket.cumulative_count, family.name
                    checked += 1
                assert protobuf.below(histogram, math.inf) == histogram.sample_count
        said = [(labels, value, round(at, 3)) for labels, value, at in in_buckets]
        assert said == [(labels, value, at) for _, labels, value, at in in_openmetrics(seed)] and said
        assert in_native == in_buckets
    for broken in (b"\x05\x0a\x01a", b"\x02\x0a\x05", b"\xff"):
        try:
            protobuf.families(broken)
        except Exception:  # of several kinds
            continue
        raise AssertionError(f"{broken!r} is accepted")
    assert checked > 10_000
    print(f"protobuf reads {len(SEEDS)} expositions, finds what the text form has, and {checked} classic buckets in native ones")
    return 0


if __name__ == "__main__":
    judges = {"promtool": judge_with_promtool, "openmetrics": judge_with_parsers, "protobuf": judge_with_protobuf}
    sys.exit(judges[sys.argv[1]](sys.argv[2]))
