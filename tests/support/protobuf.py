"""Reads Prometheus' protobuf exposition with Debian's protobuf (python3-protobuf), which shares nothing with tacho."""

import bisect
import itertools

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal.decoder import _DecodeVarint32

ACCEPT = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
TYPES = ["counter", "gauge", "summary", "untyped", "histogram"]

# Messages of package io.prometheus.client, as far as tacho writes them: name, number, type; a list where it is repeated.
MESSAGES = {
    "LabelPair": [("name", 1, "string"), ("value", 2, "string")],
    "Timestamp": [("seconds", 1, "int64"), ("nanos", 2, "int32")],
    "Gauge": [("value", 1, "double")],
    "Counter": [("value", 1, "double"), ("created_timestamp", 3, "Timestamp")],
    "Untyped": [("value", 1, "double")],
    "Quantile": [("quantile", 1, "double"), ("value", 2, "double")],
    "Summary": [
        ("sample_count", 1, "uint64"), ("sample_sum", 2, "double"), ("quantile", 3, ["Quantile"]),
        ("created_timestamp", 4, "Timestamp"),
    ],
    "Exemplar": [("label", 1, ["LabelPair"]), ("value", 2, "double"), ("timestamp", 3, "Timestamp")],
    "Bucket": [("cumulative_count", 1, "uint64"), ("upper_bound", 2, "double"), ("exemplar", 3, "Exemplar")],
    "BucketSpan": [("offset", 1, "sint32"), ("length", 2, "uint32")],
    "Histogram": [
        ("sample_count", 1, "uint64"), ("sample_sum", 2, "double"), ("bucket", 3, ["Bucket"]), ("schema", 5, "sint32"),
        ("zero_threshold", 6, "double"), ("zero_count", 7, "uint64"), ("positive_span", 12, ["BucketSpan"]),
        ("positive_delta", 13, ["sint64"]), ("created_timestamp", 15, "Timestamp"),
        ("exemplars", 16, ["Exemplar"]),
    ],
    "Metric": [
        ("label", 1, ["LabelPair"]), ("gauge", 2, "Gauge"), ("counter", 3, "Counter"), ("summary", 4, "Summary"),
        ("untyped", 5, "Untyped"), ("histogram", 7, "Histogram"),
    ],
    "MetricFamily": [
        ("name", 1, "string"), ("help", 2, "string"), ("type", 3, "int32"), ("metric", 4, ["Metric"]), ("unit", 5, "string"),
    ],
}  # fmt: skip


def _family_class():
    file = descriptor_pb2.FileDescriptorProto(name="metrics.proto", package="io.prometheus.client", syntax="proto2")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field_name, number, kind in fields:
            field = message.field.add(name=field_name, number=number)
            repeated = isinstance(kind, list)
            kind = kind[0] if repeated else kind
            field.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
            if kind in MESSAGES:
                field.type, field.type_name = field.TYPE_MESSAGE, f".io.prometheus.client.{kind}"
            else:
                field.type = getattr(field, f"TYPE_{kind.upper()}")
                # Readers have to take either; packed is the shorter one.
                field.options.packed = repeated
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.MessageFactory(pool).GetPrototype(pool.FindMessageTypeByName("io.prometheus.client.MetricFamily"))


MetricFamily = _family_class()


def families(exposition: bytes) -> list:
    """All MetricFamily messages; ValueError for what is none, or has fields that are not in MESSAGES."""
    found, at = [], 0
    while at < len(exposition):
        size, at = _DecodeVarint32(exposition, at)
        if at + size > len(exposition):
            raise ValueError(f"a family of {size} bytes at {at} goes beyond the {len(exposition)} that there are")
        family = MetricFamily.FromString(exposition[at : at + size])
        if family.ByteSize() != size:
            raise ValueError(f"{family.name}: {size} bytes, written again {family.ByteSize()}")
        found.append(family)
        at += size
    return found


def labels_of(metric) -> dict[str, str]:
    return {label.name: label.value for label in metric.label}


def exemplar_of(exemplar) -> tuple[dict[str, str], float, float]:
    """Labels, value, Unix time."""
    return labels_of(exemplar), exemplar.value, exemplar.timestamp.seconds + exemplar.timestamp.nanos / 1e9


def native_buckets(histogram) -> list[tuple[float, int]]:
    """(upper bound, count) of the buckets of a native histogram, the zero bucket first, empty ones left out."""
    found = [(histogram.zero_threshold, histogram.zero_count)]
    indices, at = [], 0
    for span in histogram.positive_span:
        at += span.offset
        indices += range(at, at + span.length)
        at += span.length
    counts = list(itertools.accumulate(histogram.positive_delta))
    if len(indices) != len(counts):
        raise ValueError(f"{len(indices)} buckets in spans, {len(counts)} counts")
    if min(counts, default=0) < 0:
        raise ValueError(f"a negative count: {counts}")
    found += [(2.0 ** (index * 2.0**-histogram.schema), count) for index, count in zip(indices, counts)]
    return [(bound, count) for bound, count in found if count]


def below(histogram, bound: float) -> int:
    """Observations of a native histogram up to `bound`, which has to be the bound of one of its buckets, or infinity."""
    buckets = native_buckets(histogram)
    # Bounds are roots of two: one that is computed in another way may differ in the last place.
    end = bisect.bisect_right([each for each, _ in buckets], bound * (1 + 1e-12))
    return sum(count for _, count in buckets[:end])


def quantile(histogram, q: float, before=None) -> float:
    """Of a native histogram, as histogram_quantile() takes it: linear within a bucket; of what came since `before`."""
    width = 2.0 ** (2.0**-histogram.schema)
    known = dict(native_buckets(before)) if before else {}
    buckets = [(bound, count - known.get(bound, 0)) for bound, count in native_buckets(histogram)]
    rank, passed = q * sum(count for _, count in buckets), 0
    for bound, count in buckets:
        if count and passed + count >= rank:
            low = 0 if bound == histogram.zero_threshold else bound / width
            return low + (bound - low) * (rank - passed) / count
        passed += count
    return float("nan")
