#!/usr/bin/python3
"""Asks python3-jsonschema about config/tacho.schema.json: is it a schema, does it accept config/tacho.yaml and good
samples, does it refuse bad ones? Usage: schema_judge.py CONFIG_DIRECTORY. Exit code 77: a module is missing."""

import json
import pathlib
import sys

try:
    import jsonschema
    import yaml
except ImportError as error:
    print(f"skipped: {error}; install python3-jsonschema and python3-yaml")
    sys.exit(77)

GOOD = [
    "{}",
    "window: 1m30s",
    "targets: [{name: web, cgroup: /system.slice/nginx.service}]",
    "targets: [{name: api, container: {}, ports: [80, 8080], labels: {team: payments}}]",
    "targets: [{name: dns, process: {port: 53}}, {name: own, self: pod}]",
    "probes: {socket: {enabled: false, attach: kprobe}}",
    "limits: {max_targets: 10000, max_peers: 1024}",
    "histograms: {buckets_per_octave: 4, format: native}",
    "metrics: {drop: ['tacho_*']}",
]

BAD = [
    "[]",
    "windw: 10s",
    "window: 10",
    "window: ''",
    "window: 10 s",
    "window: 1s1m",
    "targets: web",
    "targets: [{cgroup: /a}]",
    "targets: [{name: a}]",
    "targets: [{name: '', self: pod}]",
    "targets: [{name: other, self: pod}]",
    "targets: [{name: a, self: pod, cgroup: /a}]",
    "targets: [{name: a, self: node}]",
    "targets: [{name: a, cgroup: a}]",
    "targets: [{name: a, process: {}}]",
    "targets: [{name: a, process: {port: 65536}}]",
    "targets: [{name: a, self: pod, ports: [0]}]",
    "targets: [{name: a, self: pod, ports: [80, 80]}]",
    "targets: [{name: a, self: pod, labels: {le: x}}]",
    "targets: [{name: a, self: pod, labels: {__x: x}}]",
    "targets: [{name: a, self: pod, labels: {9a: x}}]",
    "targets: [{name: a, self: pod, labels: {a: 5}}]",
    "discovery: {listeners: maybe}",
    "discovery: {exclude: [ssh]}",
    "probes: {socket: {attach: uprobe}}",
    "probes: {poll: {enabled: 'true'}}",
    "histograms: {buckets_per_octave: 3}",
    "histograms: {format: text}",
    "metrics: {drop: tacho_up}",
    "metrics: {drop: ['']}",
    "limits: {max_targets: 0}",
    "limits: {max_peers: 1025}",
    "run_statistics: 1",
]


def main() -> int:
    directory = pathlib.Path(sys.argv[1])
    schema = json.loads((directory / "tacho.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    failures = []
    for text in [(directory / "tacho.yaml").read_text(), *GOOD]:
        failures += [f"refused: {text!r}: {error.message}" for error in validator.iter_errors(yaml.safe_load(text))]
    failures += [f"accepted: {text!r}" for text in BAD if validator.is_valid(yaml.safe_load(text))]
    print("\n".join(failures) or f"{1 + len(GOOD)} good and {len(BAD)} bad samples judged rightly")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
