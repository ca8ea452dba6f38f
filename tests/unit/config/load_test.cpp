#include "config/load.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <string>

#include "loading.h"

using namespace std::chrono_literals;
namespace config = tacho::config;

TEST_CASE("every key is read into its place") {
  const auto read = good(R"(
window: 1m30s
idle_limit: 500ms
targets:
  - name: web
    cgroup: /system.slice/nginx.service
  - name: api
    container: {name: "api-*", namespace: prod, pod: "*"}
    ports: [8080, 8443]
    http2: true
    labels: {team: payments, Zone_1: "7"}
  - name: dns
    process: {exe: /usr/sbin/unbound, port: 53}
    http2: false
  - name: sidecar
    self: pod
    http2: auto
  - name: own
    self: cgroup
discovery:
  listeners: always
  exclude: ["/system.slice/ssh.service", /init.scope]
  exclude_namespaces: [infra]
labels:
  rename: {namespace: kube_namespace, cgroup: path}
  drop: [pod, container]
probes:
  socket: {enabled: false, attach: kprobe}
  poll: {enabled: true, attach: raw_tracepoint}
histograms: {format: native, buckets_per_octave: 4}
metrics: {drop: ["tacho_socket_*", process_threads]}
limits: {max_targets: 10000, max_peers: 1, overhead: 0.25%, machine_overhead: "100%"}
peers:
  - name: database
    networks: [10.0.3.0/24, "fd00:3::/64"]
run_statistics: true
)");
  CHECK(read.window == 90s);
  CHECK(read.idle_limit == 500ms);
  REQUIRE(read.targets.size() == 5);
  CHECK(read.targets[0].name == "web");
  CHECK(read.targets[0].cgroup == "/system.slice/nginx.service");
  CHECK_FALSE(read.targets[0].container);
  CHECK_FALSE(read.targets[0].process);
  CHECK_FALSE(read.targets[0].self);
  CHECK(read.targets[0].ports.empty());
  CHECK(read.targets[0].location.line == 5);
  CHECK(read.targets[0].location.column == 5);
  REQUIRE(read.targets[1].container);
  CHECK(read.targets[1].http2 == config::Http2::on);
  CHECK(read.targets[0].http2 == config::Http2::automatic);
  CHECK(read.targets[2].http2 == config::Http2::off);
  CHECK(read.targets[3].http2 == config::Http2::automatic);
  CHECK(read.targets[1].container->name == "api-*");
  CHECK(read.targets[1].container->namespace_ == "prod");
  CHECK(read.targets[1].container->pod == "*");
  CHECK(read.targets[1].ports == std::vector<std::uint16_t>{8080, 8443});
  CHECK(read.targets[1].labels == std::map<std::string, std::string>{{"team", "payments"}, {"Zone_1", "7"}});
  REQUIRE(read.targets[2].process);
  CHECK(read.targets[2].process->exe == "/usr/sbin/unbound");
  CHECK(read.targets[2].process->port == 53);
  CHECK(read.targets[3].self == config::SelfScope::pod);
  CHECK(read.targets[4].self == config::SelfScope::cgroup);
  CHECK(read.discovery.listeners == config::Listeners::always);
  CHECK(read.discovery.exclude == std::vector<std::string>{"/system.slice/ssh.service", "/init.scope"});
  CHECK(read.discovery.exclude_namespaces == std::vector<std::string>{"infra"});
  CHECK(read.labels.rename.namespace_ == "kube_namespace");
  CHECK(read.labels.rename.pod == "pod");
  CHECK(read.labels.rename.cgroup == "path");
  CHECK(read.labels.drop ==
        std::vector{config::ContainerLabels::Label::pod, config::ContainerLabels::Label::container});
  CHECK_FALSE(read.probes.socket.enabled);
  CHECK(read.probes.socket.attach == config::Attach::kprobe);
  CHECK(read.probes.poll.enabled);
  CHECK(read.probes.poll.attach == config::Attach::raw_tracepoint);
  CHECK(read.histograms.format == config::HistogramForm::native);
  CHECK(read.histograms.buckets_per_octave == 4);
  REQUIRE(read.metrics.drop.size() == 2);
  CHECK(read.metrics.drop[0].pattern == "tacho_socket_*");
  CHECK(read.metrics.drop[1].pattern == "process_threads");
  CHECK(read.metrics.drop[1].where.line == read.metrics.drop[0].where.line);
  CHECK(read.metrics.drop[0].where.column == 18);
  CHECK(read.limits.max_targets == 10000);
  CHECK(read.limits.max_peers == 1);
  CHECK(read.limits.overhead == config::Percent{25});
  CHECK(read.limits.machine_overhead.share() == 1);
  CHECK(read.peers == std::vector{config::PeerName{.name = "database", .networks = {"10.0.3.0/24", "fd00:3::/64"}}});
  CHECK(read.run_statistics);
}

TEST_CASE("nothing written means the defaults") {
  const std::string text =
      GENERATE("", "\n\n", "# only a comment\n", "---\n", "---\n...\n", "{}", "null", "~", "\xef\xbb\xbf");
  CAPTURE(text);
  const auto read = good(text);
  CHECK(read.window == 10s);
  CHECK(read.idle_limit == 1s);
  CHECK(read.targets.empty());
  CHECK(read.discovery.listeners == config::Listeners::automatic);
  CHECK(read.probes.socket.enabled);
  CHECK(read.probes.poll.attach == config::Attach::automatic);
  CHECK(read.histograms.format == config::HistogramForm::both);
  CHECK(read.histograms.buckets_per_octave == 0);
  CHECK(read.metrics.drop.empty());
  CHECK(read.limits.max_targets == 256);
  CHECK(read.limits.max_peers == 32);
  CHECK(read.limits.overhead == config::Percent{});
  CHECK(read.limits.machine_overhead == config::Percent{});
  CHECK_FALSE(read.limits.held_shed_level);
  CHECK(read.limits.calm == 30s);
  CHECK_FALSE(read.run_statistics);
}

TEST_CASE("the ends of ranges are in them") {
  CHECK(good("{window: 2s, idle_limit: 10ms}").window == 2s);
  CHECK(good("{window: 1h, idle_limit: 4s}").idle_limit == 4s);
  CHECK(good("limits: {max_targets: 1, max_peers: 1024}").limits.max_peers == 1024);
  CHECK(good("targets: [{name: a, process: {port: 65535}, ports: [1]}]").targets.at(0).process->port == 65535);
}

TEST_CASE("a selector without keys matches every container") {
  const auto read = good("targets: [{name: all, container: {}}]");
  REQUIRE(read.targets.at(0).container);
  CHECK_FALSE(read.targets[0].container->name);
}

TEST_CASE("YAML's ways of writing the same are understood") {
  CHECK(good("\"window\": '20s'\n").window == 20s);
  CHECK(good("{\"window\": \"20s\", \"run_statistics\": true}").run_statistics);
  CHECK(good("window: 20s\r\nrun_statistics: True\r\n").run_statistics);
  CHECK(good("\xef\xbb\xbfwindow: 20s").window == 20s);
  CHECK(good("window: 20s\n...\n").window == 20s);
  CHECK(good("? window\n: 20s\n").window == 20s);
  CHECK(good("window: >-\n  20s\n").window == 20s);
}

TEST_CASE("aliases stand for what they name") {
  const auto read = good(R"(
targets:
  - {name: a, cgroup: /a, labels: &common {team: x}}
  - {name: b, cgroup: /b, labels: *common}
)");
  CHECK(read.targets.at(1).labels.at("team") == "x");
}

TEST_CASE("ten thousand targets fit in a file, be it one line") {
  std::string yaml = "{limits: {max_targets: 10000}, targets: [";
  for (int i = 0; i < 10'000; ++i) {
    yaml += "{name: t" + std::to_string(i) + ", cgroup: /system.slice/s" + std::to_string(i) +
            ".service, labels: {team: é}}, ";
  }
  const auto read = good(yaml + "]}");
  REQUIRE(read.targets.size() == 10'000);
  CHECK(read.targets.back().labels.at("team") == "é");
  CHECK(read.targets.back().location.column > 600'000);
}

TEST_CASE("contradictions that leave nothing to do are warnings") {
  std::string probes;
  for (const config::NamedProbe& probe : config::kProbes) {
    // While one is left, something is observed.
    CHECK(config::load_text("probes: {" + probes + "}\n", "x").warnings.empty());
    probes += std::string(probe.name) + ": {enabled: false}, ";
  }
  const auto loaded = config::load_text("discovery: {listeners: never}\nprobes: {" + probes + "}\n", "x");
  CHECK(loaded.errors.empty());
  CHECK(brief(loaded.warnings) ==
        std::vector<std::string>{"1:12 nothing will be watched: no targets, and discovery is off",
                                 "2:9 nothing will be observed: all probes are disabled"});
}

TEST_CASE("anatomy without the probes that it is made of is a warning") {
  const auto warned = [](const std::string& probes) {
    return brief(config::load_text("probes: {" + probes + "}\n", "x").warnings);
  };
  CHECK(warned("anatomy: {enabled: true}").empty());
  CHECK(warned("sched: {enabled: false}").empty());
  CHECK(warned("anatomy: {enabled: true}, poll: {enabled: false}").empty());
  for (const std::string probe : {"sched", "socket"}) {
    CHECK(
        warned("anatomy: {enabled: true}, " + probe + ": {enabled: false}") ==
        std::vector<std::string>{"1:9 probes.anatomy: nothing will be said about what requests wait for: it takes the "
                                 "probes socket and sched, and " +
                                 probe + " is disabled"});
  }
}

TEST_CASE("a diagnostic is printed as compilers do") {
  CHECK(config::format({.where = {.line = 3, .column = 7}, .message = "bad", .hint = "do good"}, "a.yaml") ==
        "a.yaml:3:7: error: bad (do good)");
  CHECK(config::format(
            {.severity = config::Severity::warning, .where = {.line = 3, .column = 7}, .message = "bad", .hint = {}},
            "a.yaml") == "a.yaml:3:7: warning: bad");
  CHECK(config::format({.where = {}, .message = "bad", .hint = {}}, "a\n.yaml") == "a\\n.yaml: error: bad");
}

TEST_CASE("an unreadable file is one error that names the remedy") {
  const auto missing = config::load_file("/nonexistent/tacho.yaml");
  REQUIRE(missing.errors.size() == 1);
  CHECK(config::format(missing.errors[0], missing.file_name) ==
        "/nonexistent/tacho.yaml: error: cannot open the file: No such file or directory (check the path after "
        "--config.file; "
        "a relative one starts at the working directory)");
  const auto directory = config::load_file(std::filesystem::temp_directory_path());
  CHECK(brief(directory.errors) == std::vector<std::string>{"0:0 cannot read the file: Is a directory"});
}

TEST_CASE("an endless file is refused without being read to its end") {
  CHECK(brief(config::load_file("/dev/zero").errors) == std::vector<std::string>{"0:0 it is no regular file"});
}
