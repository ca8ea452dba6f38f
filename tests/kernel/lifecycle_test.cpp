// What tacho says about itself, and what it leaves behind.

#include <bpf/bpf.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "kernel/bpf_object.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "probes/registry.h"
#include "process/capabilities.h"
#include "scrape/families.h"
#include "scrape/self_families.h"

using namespace tacho::kernel_test;

namespace {

constexpr int kRequests = 23;

/// Kernel ids of the programs and maps of a tacho.
struct Ids {
  std::vector<std::uint32_t> programs;
  std::vector<std::uint32_t> maps;
};

Ids ids_of(Running& tacho) {
  Ids ids;
  for (const tacho::kernel::BpfObject* object : tacho.app().objects()) {
    for (const auto& [name, descriptor] : object->loaded_programs()) {
      bpf_prog_info info{};
      __u32 size = sizeof(info);
      if (bpf_obj_get_info_by_fd(descriptor, &info, &size) == 0) {
        ids.programs.push_back(info.id);
      }
    }
    bpf_map* map = nullptr;
    bpf_object__for_each_map(map, object->get()) {
      bpf_map_info info{};
      __u32 size = sizeof(info);
      if (bpf_map__fd(map) >= 0 && bpf_obj_get_info_by_fd(bpf_map__fd(map), &info, &size) == 0) {
        ids.maps.push_back(info.id);
      }
    }
  }
  return ids;
}

/// How many of these the kernel still has.
std::size_t alive(const Ids& ids) {
  const auto exists = [](int descriptor) { return static_cast<bool>(tacho::UniqueFd(descriptor)); };
  return static_cast<std::size_t>(
      std::ranges::count_if(ids.programs, [&](auto id) { return exists(bpf_prog_get_fd_by_id(id)); }) +
      std::ranges::count_if(ids.maps, [&](auto id) { return exists(bpf_map_get_fd_by_id(id)); }));
}

}  // namespace

TEST_CASE("a tacho that ends leaves no program and no map behind, and another one can start") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  std::set<std::uint32_t> earlier;
  for (const int round : {1, 2}) {
    CAPTURE(round);
    Ids ids;
    {
      Running tacho(watching(cgroup.path()));
      Server server(cgroup.directory());
      server.ask(kRequests);
      CHECK(tacho.page().value("tacho_requests_total") == kRequests);
      server.finish();
      ids = ids_of(tacho);
      CHECK(ids.programs.size() > 15);
      CHECK(ids.maps.size() > 8);
      CHECK(alive(ids) == ids.programs.size() + ids.maps.size());
    }
    // The kernel frees them a moment later.
    CHECK(shared().wait_for([&] { return alive(ids) == 0; }));
    for (const auto id : ids.programs) {
      CHECK(earlier.insert(id).second);
    }
  }
}

TEST_CASE("every object is loaded once: what the kernel refuses is known before") {
  for (const tacho::kernel::BpfObject* object : shared().app().objects()) {
    CAPTURE(object->name());
    // Up to Linux 5.11 an iterator may not ask for paths, which only the verifier tells.
    const bool may_ask_for_paths = object->name() != "targets" || object->program("list_processes") != nullptr;
    CHECK(object->tries() == (may_ask_for_paths ? 1 : 2));
  }
}

TEST_CASE("a probe that is to attach by kprobes is loaded once, also where the kernel has none") {
  auto config = watching(playground() + "/*");
  config.probes.poll.enabled = false;
  config.probes.sched.enabled = false;
  config.probes.socket.attach = tacho::config::Attach::kprobe;
  Running tacho(config);
  for (const tacho::kernel::BpfObject* object : tacho.app().objects()) {
    CAPTURE(object->name());
    CHECK((object->name() == "targets" || object->tries() == 1));
  }
}

TEST_CASE("hooks are attached, collectors succeed, and nothing is lost") {
  const Watched where;
  // Events of the whole machine wait for a test that lets the shared tacho work: their ring may have been full before.
  const Page before = shared().page();
  Server server(where.directory());
  server.ask(kRequests);
  server.finish();
  const Page page = shared().page();
  std::vector<std::string> objects{"targets"};
  for (const auto& probe : tacho::probes::registry()) {
    objects.emplace_back(probe.name);
  }
  for (const std::string& object : objects) {
    CAPTURE(object);
    CHECK(page.count("tacho_probe_attached", {{"probe", object}}) > 0);
    CHECK(page.count("tacho_probe_attached", {{"probe", object}, {"method", "none"}}) == 0);
    for (const char* reason :
         {"socket_state", "task_state", "ring_full", "map_full", "stale_target", "peer_overflow"}) {
      CAPTURE(reason);
      const Labels lost{{"probe", object}, {"reason", reason}};
      CHECK(page.value("tacho_lost_events_total", lost) == before.value("tacho_lost_events_total", lost));
    }
  }
  for (const auto& probe : tacho::probes::registry()) {
    CHECK(page.value("tacho_scrape_collector_success", {{"collector", std::string(probe.name)}}) == 1);
  }
  CHECK(page.value("tacho_config_last_reload_successful") == 1);
  CHECK(page.value("tacho_target_condition", {{"cgroup", where.path()}, {"condition", "lost_events"}}) == 0);
  CHECK(page.value("tacho_map_entries", {{"map", "cgroup_targets"}}) >= 1);
  CHECK(page.value("tacho_map_max_entries", {{"map", "cgroup_targets"}}) >
        page.value("tacho_map_entries", {{"map", "cgroup_targets"}}));
}

TEST_CASE("a scrape has exactly the families that are documented") {
  const Watched where;
  std::set<std::string> documented;
  for (const auto& probe : tacho::probes::registry()) {
    for (const auto& family : probe.families()) {
      documented.emplace(family.name);
    }
  }
  for (const auto& judged : tacho::scrape::judged_families()) {
    for (const auto& family : judged.families) {
      documented.emplace(family.name);
    }
  }
  for (const auto& family : tacho::scrape::kSelfFamilies) {
    if (family.help.find("run_statistics") == std::string_view::npos) {
      documented.emplace(family.name);
    }
  }
  // As the program does that serves.
  shared().app().scraper().observe_web([] { return tacho::scrape::WebCounters{.lost = {{"timeout", 0}}}; });
  shared().app().scraper().observe_processes(
      [] { return std::vector{*tacho::process::rights_of("collector", ::getpid())}; });
  const auto families = shared().page().families();
  const std::set<std::string> emitted(families.begin(), families.end());
  CHECK(emitted.size() == families.size());
  CHECK(emitted == documented);
}

TEST_CASE("run statistics are exported when they are asked for") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  auto config = watching(cgroup.path());
  config.run_statistics = true;
  config.probes.poll.enabled = false;
  Running tacho(config);
  Server server(cgroup.directory());
  server.ask(kRequests);
  server.finish();
  const Page page = tacho.page();
  // The program depends on the method; Linux 6.1 has no tracepoint of sends.
  const bool function = page.count("tacho_probe_runs_total", {{"program", "socket_send"}}) == 0;
  const bool kprobe = page.count("tacho_probe_runs_total", {{"program", "socket_kretprobe_inet_sendmsg"}}) == 1;
  const Labels sends{{"probe", "socket"},
                     {"program", kprobe     ? "socket_kretprobe_inet_sendmsg"
                                 : function ? "socket_fexit_inet_sendmsg"
                                            : "socket_send"}};
  CHECK(page.value("tacho_probe_runs_total", sends) >= kRequests);
  CHECK(page.value("tacho_probe_run_seconds_total", sends) > 0);
  CHECK(page.value("tacho_probe_misses_total", sends) >= 0);
}

TEST_CASE("run statistics that a reload asks for are not exported: the kernel measures none until a restart") {
  const std::string file = std::filesystem::temp_directory_path() / (unique_name() + ".yaml");
  std::ofstream(file) << "{run_statistics: true}";
  Running tacho(watching("/nonexistent"), file);
  for (int reload = 0; reload < 2; ++reload) {
    REQUIRE(tacho.app().reload());
    CHECK(tacho.page().count("tacho_probe_runs_total") == 0);
  }
  std::filesystem::remove(file);
}

TEST_CASE("a probe that is switched off is not there, the other works") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  auto config = watching(cgroup.path());
  config.probes.socket.enabled = false;
  Running tacho(config);
  const Page page = tacho.page();
  CHECK(page.count("tacho_requests_total") == 0);
  CHECK(page.count("tacho_probe_attached", {{"probe", "socket"}}) == 0);
  CHECK(page.value("tacho_poll_waiters") == 0);
}

TEST_CASE("nothing to observe is an error, and so is a method that no hook of a probe has where all need it") {
  auto config = watching("/nonexistent");
  for (const auto& probe : tacho::config::kProbes) {
    (config.probes.*probe.settings).enabled = false;
  }
  const auto app = tacho::App::start(tacho::Cli{}, config, true);
  REQUIRE_FALSE(app);
  CHECK(app.error().message.find("disabled") != std::string::npos);
}

TEST_CASE("a plan loads everything and attaches nothing") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  auto app = tacho::App::start(tacho::Cli{}, watching(cgroup.path()), false);
  REQUIRE(app);
  Server server(cgroup.directory());
  server.ask(kRequests);
  server.finish();
  const Page page((*app)->scraper().scrape(tacho::metrics::Format::prometheus_text));
  CHECK(page.value("tacho_requests_total") == 0);
  CHECK(page.value("tacho_targets") == 1);
}
