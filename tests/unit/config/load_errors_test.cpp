#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "loading.h"

namespace {

struct Case {
  std::string yaml;
  std::vector<std::string> errors;  ///< all of them, each up to where the text of the message stops mattering
};

// One bad configuration each, with every error that it must give and no other.
const std::vector<Case> kCases{
    // unknown and duplicate keys
    {"windw: 10s\n", {"1:1 unknown key 'windw'"}},
    {"# comment\n\nWindow: 10s\n", {"3:1 unknown key 'Window'"}},
    {"probes:\n  socket:\n    enabld: true\n", {"3:5 probes.socket: unknown key 'enabld'"}},
    {"max_peers: 3\n", {"1:1 unknown key 'max_peers'"}},
    {"targets:\n  - name: a\n    self: pod\n    port: 80\n", {"4:5 targets[0]: unknown key 'port'"}},
    {"<<: {window: 10s}\n", {"1:1 unknown key '<<'"}},
    {"? [window]\n: 10s\n", {"1:3 a key must be a word, not a list"}},
    {": 10s\n", {"1:1 a key must be a word, not nothing"}},
    {"window: 10s\nidle_limit: 1s\nwindow: 20s\n", {"3:1 duplicate key 'window'"}},
    {"limits: {max_peers: 1, max_peers: 1}\n", {"1:24 limits: duplicate key 'max_peers'"}},
    {"targets:\n  - {name: a, self: pod, name: b}\n", {"2:26 targets[0]: duplicate key 'name'"}},
    {"labels: {rename: {pod: job}}\n", {"1:24 labels.rename.pod: 'job': is reserved"}},
    {"labels: {drop: [target]}\n", {"1:17 labels.drop[0]"}},
    {"labels: {rename: {pod: a, container: a}}\n", {"1:9 labels.rename.container: label 'a' is given twice"}},
    // wrong types
    {"- window: 10s\n", {"1:1 expected a mapping, not a list"}},
    {"window\n", {"1:1 expected a mapping, not text"}},
    {"window: [10s]\n", {"1:9 window: expected a duration from 2s to 1h, not a list"}},
    {"window: {seconds: 10}\n", {"1:9 window: expected a duration from 2s to 1h, not a mapping"}},
    {"window: true\n", {"1:9 window: expected a duration from 2s to 1h, not a truth value"}},
    {"window: 1.5\n", {"1:9 window: expected a duration from 2s to 1h, not a number"}},
    {"window:\n", {"1:1 window: has no value: expected a duration"}},
    {"window: ~\n", {"1:1 window: has no value"}},
    {"probes: {socket: , poll: {}}\n", {"1:10 probes.socket: has no value: expected a mapping"}},
    {"targets: [{name: a, cgroup: /a, http2: aut}]\n",
     {"1:40 targets[0].http2: expected true, false or auto, not 'aut'"}},
    {"run_statistics: yes\n", {"1:17 run_statistics: expected true or false, not text"}},
    {"run_statistics: 1\n", {"1:17 run_statistics: expected true or false, not a number"}},
    {"run_statistics: 'true'\n", {"1:17 run_statistics: expected true or false, not text in quotes"}},
    {"targets: {name: a, self: pod}\n", {"1:10 targets: expected a list of targets, not a mapping"}},
    {"targets: [web]\n", {"1:11 targets[0]: expected a mapping, not text"}},
    {"limits: 5\n", {"1:9 limits: expected a mapping, not a number"}},
    {"limits: {max_peers: '5'}\n", {"1:21 limits.max_peers: expected a number from 1 to 1024, not text in quotes"}},
    {"limits: {max_peers: 5.0}\n", {"1:21 limits.max_peers: expected a number from 1 to 1024, not a number"}},
    {"limits: {max_peers: many}\n", {"1:21 limits.max_peers: expected a number from 1 to 1024, not text"}},
    {"targets: [{name: 5, self: pod}]\n", {"1:18 targets[0].name: expected text, not a number"}},
    {"targets: [{name: a, self: pod, ports: 80}]\n", {"1:39 targets[0].ports: expected a list of ports, not a number"}},
    {"targets: [{name: a, self: pod, labels: [x]}]\n",
     {"1:40 targets[0].labels: expected a mapping of label names to values, not a list"}},
    {"targets: [{name: a, self: pod, labels: {team: 7}}]\n",
     {"1:47 targets[0].labels.'team': expected text, not a number"}},
    {"targets: [{name: a, cgroup: [a-z]}]\n", {"1:29 targets[0].cgroup: expected a glob on a cgroup path, not a list"}},
    // units and ranges
    {"window: 10\n", {"1:9 window: '10' has no unit"}},
    {"window: 10 s\n", {"1:9 window: '10 s' has an unknown unit"}},
    {"window: 1.5s\n", {"1:9 window: '1.5s' has an unknown unit"}},
    {"window: 10sec\n", {"1:9 window: '10sec' has an unknown unit"}},
    {"window: -10s\n", {"1:9 window: '-10s' is not a whole number with a unit"}},
    {"window: 1999ms\n", {"1:9 window: '1999ms' is out of range"}},
    {"window: 1h1ns\n", {"1:9 window: '1h1ns' is out of range"}},
    {"window: 99999999999999999999h\n", {"1:9 window: '99999999999999999999h' is not a whole number"}},
    {"idle_limit: 9ms\n", {"1:13 idle_limit: '9ms' is out of range"}},
    {"idle_limit: 4001ms\n", {"1:13 idle_limit: '4001ms' is out of range"}},
    {"histograms: {buckets_per_octave: 3}\n", {"1:34 histograms.buckets_per_octave: '3' is out of range"}},
    {"histograms: {format: nativ}\n", {"1:22 histograms.format: expected classic, native or both, not 'nativ'"}},
    {"metrics: {drop: ['tacho_[']}\n", {"1:18 metrics.drop[0]: 'tacho_['"}},
    {"metrics: {drop: tacho_up}\n", {"1:17 metrics.drop: expected a list of globs on metrics' names"}},
    {"limits: {max_targets: 0, max_peers: 0}\n",
     {"1:23 limits.max_targets: '0' is out of range", "1:37 limits.max_peers: '0' is out of range"}},
    {"limits: {max_targets: 10001, max_peers: 1025}\n",
     {"1:23 limits.max_targets: '10001' is out of range", "1:41 limits.max_peers: '1025' is out of range"}},
    {"limits: {overhead: 1}\n", {"1:20 limits.overhead: '1' has no percent sign"}},
    {"limits: {overhead: 0.5}\n", {"1:20 limits.overhead: '0.5' has no percent sign"}},
    {"limits: {overhead: true}\n",
     {"1:20 limits.overhead: expected a percentage from 0.01% to 100%, not a truth value"}},
    {"limits: {overhead: off}\n", {"1:20 limits.overhead: 'off' has no percent sign"}},
    {"limits: {overhead: 0%, machine_overhead: 100.01%}\n",
     {"1:20 limits.overhead: '0%' is out of range",
      "1:42 limits.machine_overhead: '100.01%' is too large; a percentage has at most two decimals and the sign, as in "
      "1% or 0.25%"}},
    {"limits: {overhead: 1 %, machine_overhead: 1.%}\n",
     {"1:20 limits.overhead: '1 %' is not a percentage; a percentage has at most two decimals and the sign, as in 1% "
      "or "
      "0.25%",
      "1:43 limits.machine_overhead: '1.%' is not a percentage; a percentage has at most two decimals and the sign, as "
      "in 1% or 0.25%"}},
    {"limits: {overhead: [1%]}\n", {"1:20 limits.overhead: expected a percentage from 0.01% to 100%, not a list"}},
    {"limits: {max_targets: 010}\n", {"1:23 limits.max_targets: '010' has a leading zero"}},
    {"limits: {max_targets: 0x10}\n", {"1:23 limits.max_targets: '0x10' is not a plain decimal number"}},
    {"limits: {max_targets: -1}\n", {"1:23 limits.max_targets: '-1' is not a plain decimal number"}},
    {"limits: {max_targets: 99999999999999999999999}\n",
     {"1:23 limits.max_targets: '99999999999999999999999' is out of range"}},
    {"targets: [{name: a, process: {port: 0}}]\n", {"1:37 targets[0].process.port: '0' is out of range"}},
    {"targets: [{name: a, self: pod, ports: [65536, 80]}]\n", {"1:40 targets[0].ports[0]: '65536' is out of range"}},
    {"discovery: {listeners: nevr}\n", {"1:24 discovery.listeners: expected auto, always or never, not 'nevr'"}},
    {"probes: {poll: {attach: uprobe}}\n", {"1:25 probes.poll.attach: expected auto, tracepoint,"}},
    // targets
    {"targets:\n  - name: a\n", {"2:5 targets[0]: the target selects nothing"}},
    {"targets:\n  - {}\n", {"2:5 targets[0]: the key 'name' is missing", "2:5 targets[0]: the target selects nothing"}},
    {"targets:\n  - self: pod\n", {"2:5 targets[0]: the key 'name' is missing"}},
    {"targets:\n  - name: a\n    self: pod\n    cgroup: /a\n",
     {"4:5 targets[0]: the target has more than one selector: self, cgroup"}},
    {"targets:\n  - {name: a, self: pod}\n  - {name: b, self: pod}\n  - {name: a, self: cgroup}\n",
     {"4:12 duplicate target name 'a'"}},
    {"targets: [{name: other, self: pod}]\n", {"1:18 targets[0].name: 'other': is what everything beyond"}},
    {"targets: [{name: '', self: pod}]\n", {"1:18 targets[0].name: is empty"}},
    {"targets: [{name: \"a\\nb\", self: pod}]\n",
     {"1:18 targets[0].name: 'a\\nb' has a line break or another control character"}},
    {"targets: [{name: a, self: node}]\n", {"1:27 targets[0].self: expected pod or cgroup, not 'node'"}},
    {"targets: [{name: a, process: {}}]\n", {"1:30 targets[0].process: selects every process"}},
    {"targets: [{name: a, process: {exee: /a}}]\n", {"1:31 targets[0].process: unknown key 'exee'"}},
    {"targets: [{name: a, process: {exe: nginx}}]\n", {"1:36 targets[0].process.exe: 'nginx': matches nothing"}},
    {"targets: [{name: a, cgroup: ''}]\n", {"1:29 targets[0].cgroup: is empty"}},
    {"targets: [{name: a, cgroup: system.slice}]\n",
     {"1:29 targets[0].cgroup: 'system.slice': matches nothing: a cgroup path starts with /"}},
    {"targets: [{name: a, cgroup: /a/}]\n", {"1:29 targets[0].cgroup: '/a/': matches nothing"}},
    {"targets: [{name: a, cgroup: '/a[b'}]\n", {"1:29 targets[0].cgroup: '/a[b': the [ at character 3 is not closed"}},
    {"targets: [{name: a, container: {pod: '['}}]\n",
     {"1:38 targets[0].container.pod: '[': the [ at character 1 is not closed"}},
    {"discovery: {exclude: [/a, ssh]}\n", {"1:27 discovery.exclude[1]: 'ssh': matches nothing"}},
    {"targets: [{name: a, self: pod, ports: [80, 81, 80]}]\n", {"1:48 targets[0].ports: duplicate port '80'"}},
    {"limits: {max_targets: 1}\ntargets:\n  - {name: a, self: pod}\n  - {name: b, self: pod}\n",
     {"3:3 2 targets are more than limits.max_targets allows (1)"}},
    // labels
    {"targets: [{name: a, self: pod, labels: {1a: x}}]\n", {"1:41 targets[0].labels: label '1a' is not a label name"}},
    {"targets: [{name: a, self: pod, labels: {a-b: x, é: y}}]\n",
     {"1:41 targets[0].labels: label 'a-b' is not a label name",
      "1:49 targets[0].labels: label 'é' is not a label name"}},
    {"targets: [{name: a, self: pod, labels: {__name__: x}}]\n",
     {"1:41 targets[0].labels: label '__name__' starts with __"}},
    {"targets: [{name: a, self: pod, labels: {target: x, le: x, namespace: x, pod: x, container: x}}]\n",
     {"1:41 targets[0].labels: label 'target' is reserved", "1:52 targets[0].labels: label 'le' is reserved",
      "1:59 targets[0].labels: label 'namespace' is reserved", "1:73 targets[0].labels: label 'pod' is reserved",
      "1:81 targets[0].labels: label 'container' is reserved"}},
    {"targets: [{name: a, self: pod, labels: {x: a, x: b}}]\n", {"1:47 targets[0].labels: duplicate label 'x'"}},
    {"targets: [{name: a, self: pod, labels: {x: ''}}]\n", {"1:44 targets[0].labels.'x': is empty"}},
    // several at once, in the order of the file
    {"limits: {max_targets: x}\nwindow: 1s\nfoo: 1\n",
     {"1:23 limits.max_targets: expected", "2:9 window: '1s' is out of range", "3:1 unknown key 'foo'"}},
};

}  // namespace

TEST_CASE("hand-written bad configurations give their errors, each in its place") {
  for (const Case& bad : kCases) {
    CAPTURE(bad.yaml);
    const auto errors = errors_of(bad.yaml);
    CHECK(errors.size() == bad.errors.size());
    for (std::size_t i = 0; i < std::min(errors.size(), bad.errors.size()); ++i) {
      CAPTURE(errors[i], bad.errors[i]);
      CHECK(errors[i].starts_with(bad.errors[i]));
    }
  }
  CHECK(kCases.size() >= 40);
}

TEST_CASE("hints name the remedy") {
  const auto hint = [](std::string_view yaml) { return tacho::config::load_text(yaml, "x").errors.at(0).hint; };
  CHECK(hint("windw: 10s") == "did you mean 'window'?");
  CHECK(hint("max_peers: 3") == "'max_peers' belongs under 'limits'");
  CHECK(hint("targets: [{name: a, self: pod, port: 80}]") ==
        "did you mean 'ports'? 'port' belongs under 'targets.process'");
  CHECK(hint("window: 10") == "write 10s for seconds");
  CHECK(hint("targets: [{name: a, self: pod, ports: 80}]") == "write [80]");
  CHECK(hint("targets: [{name: 5, self: pod}]") == "write \"5\" in quotes");
  CHECK(hint("window: 1s\nwindow: 2s\nwindow: 3s\n") == "expected a duration from 2s to 1h");
  CHECK(hint("limits: {max_peers: 1, max_peers: 2}") == "first given in line 1");
  CHECK(hint("discovery: {listeners: nevr}") == "did you mean 'never'?");
  CHECK(hint("window 10s") == "write key: value");
  std::string probes;
  for (const tacho::config::NamedProbe& probe : tacho::config::kProbes) {
    probes += std::string(probe.name) + ", ";
  }
  CHECK(hint("probes: {enabled: true}") == "keys here are " + probes + "anatomy");
}

TEST_CASE("a file of nothing but errors is cut off after a hundred, with the number of the rest") {
  std::string yaml;
  for (int i = 0; i < 1234; ++i) {
    yaml += "key" + std::to_string(i) + ": 1\n";
  }
  const auto errors = errors_of(yaml);
  REQUIRE(errors.size() == 101);
  CHECK(errors.front().starts_with("1:1 "));
  CHECK(errors.back() == "100:1 and 1134 more");
}
