#include "config/keys.h"

#include "config/checks.h"
#include "config/glob.h"
#include "config/labels.h"
#include "config/limit_keys.h"
#include "config/types.h"

namespace tacho::config {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxName = 128;
/// The longest IPv6 address and prefix.
constexpr std::size_t kMaxNetwork = 64;

Type<std::string> glob(std::string summary, Result<void> (*check)(std::string_view) = check_glob) {
  return text({.summary = std::move(summary), .max_bytes = Glob::kMaxLength, .check = check});
}

Type<std::string> cgroup_glob() {
  auto type = glob("a glob on a cgroup path", check_cgroup_glob);
  type.schema["pattern"] = "^/";
  return type;
}

Type<std::string> name() {
  return text({.summary = "text",
               .max_bytes = kMaxName,
               .check = check_target_name,
               .schema = {{"not", {{"const", kOverflowTarget}}}}});
}

Type<std::uint16_t> port() {
  return integer<std::uint16_t>(1, 65535, "a port");
}

Type<std::vector<std::uint16_t>> ports() {
  auto type = list(port(), "a list of ports");
  type.schema["uniqueItems"] = true;
  return type;
}

Type<ContainerSelector> container() {
  return section<ContainerSelector>({
      key("name", &ContainerSelector::name, glob("a glob"), "Name of the container."),
      key("namespace", &ContainerSelector::namespace_, glob("a glob"), "Kubernetes namespace of its pod."),
      key("pod", &ContainerSelector::pod, glob("a glob"), "Name of its pod."),
  });
}

Type<ProcessSelector> process() {
  auto type = section<ProcessSelector>(
      {
          key("exe", &ProcessSelector::exe, glob("a glob on a path", check_exe_glob),
              "Path of the executable, as /proc/PID/exe shows it."),
          key("port", &ProcessSelector::port, port(), "A port that the process listens on."),
      },
      check_process);
  type.schema["minProperties"] = 1;
  return type;
}

Type<Http2> http2() {
  Type<Http2> type;
  type.summary = "true, false or auto";
  type.schema = {{"enum", {true, false, "auto"}}};
  type.read = [truth = boolean()](const Node& node, Http2& out, const Context& context) {
    if (node.kind == Node::Kind::scalar && plain_kind(node.text) == PlainKind::boolean) {
      bool on = false;
      truth.read(node, on, context);
      out = on ? Http2::on : Http2::off;
    } else if (detail::read_word(node, {"true", "false", "auto"}, context)) {
      out = Http2::automatic;
    }
  };
  type.show = [](const Http2& value) { return value == Http2::automatic ? Json("auto") : Json(value == Http2::on); };
  return type;
}

Type<Clients> clients() {
  return choice<Clients>({{"none", Clients::none}, {"node", Clients::node}});
}

Type<TargetRule> target() {
  auto type = section<TargetRule>(
      {
          key("name", &TargetRule::name, name(),
              "What the target is called in the label `target`; different for each entry, and not `other`, which is "
              "where "
              "everything beyond the limits goes.")
              .required(),
          key("cgroup", &TargetRule::cgroup, cgroup_glob(),
              "Selects by the path below the root of cgroup v2; what is below the group belongs to it. `*` stands for "
              "any "
              "characters but /, `**` for any at all, `?` for one, [a-z] and [!a-z] for one of a set or one outside "
              "it, and a "
              "backslash takes the next character as it is."),
          key("container", &TargetRule::container, container(),
              "Selects by what the kubelet or the container engine calls a container; a key left out matches "
              "everything."),
          key("process", &TargetRule::process, process(),
              "Selects processes; a process has to match both keys if both are given."),
          key("self", &TargetRule::self, choice<SelfScope>({{"pod", SelfScope::pod}, {"cgroup", SelfScope::cgroup}}),
              "Selects what tacho itself runs in: the other containers of its pod, each as a target (for a sidecar), "
              "or "
              "its own cgroup. The kernel tells: nothing of the host has to be mounted, but containers need cgroup "
              "v2."),
          key("ports", &TargetRule::ports, ports(),
              "Only server sockets on these local ports count, and none without a port (unix sockets); none given: "
              "all do."),
          key("http2", &TargetRule::http2, http2(),
              "Whether the requests of cleartext HTTP/2 connections (gRPC) are counted by the headers of their frames. "
              "`auto`: of connections that begin with HTTP/2's preface, or come to it by an upgrade, and of those that "
              "are older than tacho from the first read on that begins with a whole request. `true`: of older ones "
              "from the first frame on. `false`: of none; they are under-counted, and the condition `multiplexed` says "
              "so. Needs Linux 5.17."),
          key("exclude_clients", &TargetRule::exclude_clients, clients(),
              "Whose requests are left out of all series and counted in tacho_node_requests_total alone. `node`: those "
              "of processes of the machine that are in no container, such as the kubelet's HTTP and TCP probes, and of "
              "those that a runtime runs inside of one beside its own (exec probes, `docker exec`). `none`: nobody's."),
          key("labels", &TargetRule::labels, labels(), "Labels added to every series of the target."),
      },
      check_target);
  type.schema["oneOf"] = Json::array();
  for (const std::string_view selector : kSelectors) {
    type.schema["oneOf"].push_back({{"required", Json::array({selector})}});
  }
  return type;
}

constexpr std::string_view kTargetsExample = R"(- name: web
  cgroup: /system.slice/nginx.service
- name: api
  container: {name: "api-*", namespace: prod, pod: "*"}
  ports: [8080]
  labels: {team: payments}
- name: dns
  process: {exe: /usr/sbin/unbound, port: 53}
- name: sidecar
  self: pod
)";

Type<ContainerLabels> container_labels() {
  using Label = ContainerLabels::Label;
  using Rename = ContainerLabels::Rename;
  const auto label = text({.summary = "a label name", .max_bytes = kMaxName, .check = check_renamed_label});
  return section<ContainerLabels>({
      key("rename", &ContainerLabels::rename,
          section<Rename>({
              key("namespace", &Rename::namespace_, label, "What to call the label of the namespace."),
              key("pod", &Rename::pod, label, "What to call the label of the pod."),
              key("container", &Rename::container, label, "What to call the label of the container."),
              key("cgroup", &Rename::cgroup, label, "What to call the label of the cgroup path."),
          }),
          "Other names for these labels, where they would clash with those that a scrape adds."),
      key("drop", &ContainerLabels::drop,
          list(choice<Label>({{"namespace", Label::namespace_},
                              {"pod", Label::pod},
                              {"container", Label::container},
                              {"cgroup", Label::cgroup}}),
               "a list of these labels"),
          "Labels to leave out; targets that are alike without them are counted as one."),
  });
}

Type<Discovery> discovery() {
  return section<Discovery>({
      key("listeners", &Discovery::listeners,
          choice<Listeners>(
              {{"auto", Listeners::automatic}, {"always", Listeners::always}, {"never", Listeners::never}}),
          "Whether every container, service or process that owns a listening socket becomes a target by itself; auto: "
          "only "
          "while no target is configured."),
      key("exclude", &Discovery::exclude, list(cgroup_glob(), "a list of globs on cgroup paths"),
          "What such discovery leaves out, by cgroup."),
      key("exclude_namespaces", &Discovery::exclude_namespaces, list(glob("a glob"), "a list of globs"),
          "Namespaces of Kubernetes that it leaves out, and that a container selector without a namespace does not "
          "mean."),
      key("exclude_clients", &Discovery::exclude_clients, clients(),
          "The same as a target's, for all that is discovered."),
  });
}

using Methods = std::vector<std::pair<std::string_view, Attach>>;

/// What the key `attach` of one probe says and takes beyond what all do.
struct Attachment {
  std::string automatic = "the first that loads and attaches";
  Methods more;
};

Attachment attachment(std::string_view probe) {
  if (probe == "poll") {
    return {.automatic =
                "fentry, else scheduler, which sees only the calls that sleep; with tracepoint or "
                "raw_tracepoint every system call of the machine takes some 50 ns more",
            .more = {{"scheduler", Attach::scheduler}}};
  }
  return {};
}

Type<ProbeSwitch> probe(std::string_view name, std::string_view what) {
  Methods methods{{"auto", Attach::automatic},
                  {"tracepoint", Attach::tracepoint},
                  {"fentry", Attach::fentry},
                  {"kprobe", Attach::kprobe},
                  {"raw_tracepoint", Attach::raw_tracepoint}};
  const Attachment own = attachment(name);
  methods.insert(methods.end(), own.more.begin(), own.more.end());
  return section<ProbeSwitch>({
      key("enabled", &ProbeSwitch::enabled, boolean(), "Whether to observe " + std::string(what) + "."),
      key("attach", &ProbeSwitch::attach, choice<Attach>(methods),
          "Which family of kernel hooks to use; auto: " + own.automatic + "."),
  });
}

Type<AnatomySwitch> anatomy() {
  return section<AnatomySwitch>({
      key("enabled", &AnatomySwitch::enabled, boolean(),
          "Whether to tell what the time of requests went to. Needs the probes `socket` and `sched`, and adds a third "
          "to what they cost."),
      key("slow", &AnatomySwitch::slow, or_auto(duration(1us, 1h)),
          "Requests that take longer are slow ones, whose time is told apart. `auto`: longer than 99 % of the target's "
          "own in the last minute."),
  });
}

Type<Probes> probes() {
  return section<Probes>({
#define TACHO_KEY(name, title, hooks, observes) restart_key(#name, &Probes::name, probe(#name, hooks), observes),
      TACHO_PROBES(TACHO_KEY)
#undef TACHO_KEY
          restart_key("anatomy", &Probes::anatomy, anatomy(), "What the time of requests went to."),
  });
}

Type<Histograms> histograms() {
  return section<Histograms>({
      key("format", &Histograms::format,
          choice<HistogramForm>(
              {{"classic", HistogramForm::classic}, {"native", HistogramForm::native}, {"both", HistogramForm::both}}),
          "What scrapers get that take protobuf, as Prometheus does once native histograms are switched on: classic "
          "buckets, the native form (one series a histogram, all that is counted), or both for the scraper to choose. "
          "All others get classic buckets."),
      key("buckets_per_octave", &Histograms::buckets_per_octave, or_auto(number_of<unsigned>({1, 2, 4})),
          "Classic buckets from one power of two to the next, of every histogram: more are finer and cost more series. "
          "`auto`: one in `tacho_request_duration_seconds`, fewer in the others, as METRICS.md lists them."),
  });
}

Type<FamilyGlob> family_glob() {
  const auto pattern = glob("a glob on a metric's name");
  Type<FamilyGlob> type;
  type.summary = pattern.summary;
  type.schema = pattern.schema;
  type.read = [read = pattern.read](const Node& node, FamilyGlob& out, const Context& context) {
    out.where = node.where;
    read(node, out.pattern, context);
  };
  type.show = [](const FamilyGlob& value) { return Json(value.pattern); };
  return type;
}

Type<Metrics> metrics() {
  return section<Metrics>({
      key("drop", &Metrics::drop, list(family_glob(), "a list of globs on metrics' names"),
          "Families that no scraper gets, in any format, by the names that METRICS.md lists. The page and `tacho top` "
          "show what they show without them."),
  });
}

constexpr std::string_view kPeersExample = R"(- name: database
  networks: [10.0.3.0/24, "fd00:3::/64"]
- name: internet
  networks: [0.0.0.0/0, "::/0"]
)";

Type<PeerName> peer() {
  const auto network = text({.summary = "a network", .max_bytes = kMaxNetwork, .check = check_network});
  return section<PeerName>({
      key("name", &PeerName::name,
          text({.summary = "text",
                .max_bytes = kMaxName,
                .check = check_peer_name,
                .schema = {{"not", {{"const", kOverflowTarget}}}}}),
          "What these peers are called, followed by a colon and the port.")
          .required(),
      key("networks", &PeerName::networks, list(network, "a list of networks"),
          "Addresses of the peers, with the length of the prefix.")
          .required(),
  });
}

}  // namespace

const Type<Config>& config_type() {
  static const Type<Config> type = section<Config>(
      {
          key("window", &Config::window, duration(2s, 1h), "How far the windowed gauges look back."),
          key("idle_limit", &Config::idle_limit, duration(10ms, 4s),
              "A longer gap between two socket operations of a target counts as idleness, not as an interval."),
          key("targets", &Config::targets, list(target(), "a list of targets"),
              "What to watch. Each entry names what it selects by exactly one of cgroup, container, process and self. "
              "A glob "
              "that matches several cgroups or containers makes a target of each.")
              .example(std::string(kTargetsExample)),
          key("discovery", &Config::discovery, discovery(), "Finding targets that are not configured."),
          key("labels", &Config::labels, container_labels(), "What becomes of the labels that tell containers apart."),
          key("probes", &Config::probes, probes(), "What is observed, and how."),
          key("histograms", &Config::histograms, histograms(), "The shape of all histograms."),
          key("metrics", &Config::metrics, metrics(), "What is exposed."),
          key("limits", &Config::limits, limit_keys(), "Bounds on the number of series, and on what tacho costs."),
          restart_key(
              "peers", &Config::peers, list(peer(), "a list of peers"),
              "Names for the networks that targets call; all addresses of one name count as one dependency a port. "
              "Where "
              "networks overlap, the longest prefix wins.")
              .example(std::string(kPeersExample)),
          restart_key("run_statistics", &Config::run_statistics, boolean(),
                      "Whether the kernel measures the run time of tacho's own programs, at some 20 ns per event."),
      },
      check_config);
  return type;
}

std::vector<std::string> hold_back(const Config& running, Config& fresh) {
  std::vector<std::string> held;
  config_type().hold(running, fresh, "", held);
  return held;
}

}  // namespace tacho::config
