#include "app.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <utility>

#include "base/beside.h"
#include "base/descriptors.h"
#include "config/keys.h"
#include "kernel/bpf_log.h"
#include "kernel/features.h"
#include "kernel/health.h"
#include "kernel/statistics.h"
#include "load_config.h"
#include "probes/registry.h"
#include "scrape/target_view.h"
#include "scrape/views.h"
#include "targets/cgroup_tree.h"
#include "targets/surroundings.h"
#include "targets/targets_object.h"

namespace tacho {
namespace {

using namespace std::chrono_literals;

constexpr auto kSampleInterval = 1s;

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += (text.empty() ? "" : "; ") + line;
  }
  return text;
}

/// A way that the kernel refuses is none of the user's faults while another one is left; `tacho plan` lists them all.
void report_hooks(const kernel::BpfObject& object) {
  for (const kernel::HookState& hook : object.hooks()) {
    if (hook.attached()) {
      spdlog::debug("probe {}, hook {}: {} is used{}", object.name(), hook.hook, hook.method,
                    hook.error.empty() ? "" : "; other ways: " + hook.error);
      continue;
    }
    spdlog::warn("probe {}, hook {} is not attached: {}", object.name(), hook.hook, hook.error);
  }
  const std::string missing =
      kernel::kprobes_would_help(object.hooks()) ? kernel::missing_for_kprobes(kernel::kprobe_rights()) : "";
  if (!missing.empty()) {
    spdlog::warn(
        "kprobes, the last way to attach, need {}; the service tacho: install -D --mode=644 "
        "/usr/share/tacho/kprobes.conf /etc/systemd/system/tacho.service.d/kprobes.conf, systemctl daemon-reload, "
        "systemctl restart tacho; a container: --cap-add SYS_ADMIN --volume /sys/kernel/tracing:/sys/kernel/tracing",
        missing);
  }
}

/// Where discovery reads. A sidecar needs no cgroups as files, and mostly has others than its own hidden.
Result<targets::Paths> find_paths(const Cli& cli, const config::Config& config) {
  targets::Paths paths{.procfs = cli.procfs,
                       .cgroupfs = cli.cgroupfs,
                       .cgroup_v1 = false,
                       .names = {.log = cli.log_directory, .lib = cli.lib_directory},
                       .node = cli.node};
  auto rules = targets::TargetRules::compile(config);
  if (!rules) {
    return std::unexpected(rules.error());
  }
  if (!rules->needs_cgroup_tree()) {
    paths.cgroupfs.clear();
    return paths;
  }
  if (paths.cgroupfs.empty()) {
    auto mount = targets::find_cgroup_mount(cli.procfs + "/self/mountinfo");
    if (!mount) {
      return std::unexpected(mount.error());
    }
    paths.cgroupfs = *mount;
  }
  if (auto mounted = targets::check_cgroup_mount(paths.cgroupfs); !mounted) {
    return std::unexpected(mounted.error());
  }
  paths.cgroup_v1 = targets::is_cgroup_v1(paths.cgroupfs);
  if (paths.cgroup_v1) {
    spdlog::info("no cgroup v2 here: cgroups are those of the v1 memory controller at {}", paths.cgroupfs);
  }
  for (const std::string& line : targets::hidden_from(paths, *rules)) {
    spdlog::warn("{}", line);
  }
  return paths;
}

/// Says which directory would name the containers that have none.
void report_names(const targets::NameSources& sources, const std::vector<scrape::TargetSummary>& targets) {
  std::vector<targets::CgroupIdentity> unnamed;
  for (const scrape::TargetSummary& target : targets) {
    const bool named = std::ranges::any_of(target.labels, [](const auto& label) { return label.first == "container"; });
    if (target.identity.kind == targets::CgroupIdentity::Kind::container && !named) {
      unnamed.push_back(target.identity);
    }
  }
  for (const std::string& line : targets::missing_names(sources, unnamed)) {
    spdlog::warn("{}", line);
  }
}

}  // namespace

App::App(const Cli& cli, const config::Config& config)
    : cli_(cli), config_(config), table_(config.limits.max_targets) {}

App::~App() = default;

Result<void> App::load_probes(bool attach, std::vector<std::unique_ptr<probes::Probe>>& probes) {
  probes::Environment environment{.targets = targets_object_.get(),
                                  .shards = kernel::shard_layout(kernel::read_cpus()),
                                  .indices = table_.indices(),
                                  .max_peers = config_.limits.max_peers,
                                  .cgroup_v1 = cgroup_v1_,
                                  .hierarchies = hierarchies_,
                                  .btf_path = cli_.btf_file,
                                  .attach = attach};
  using Loaded = Result<std::unique_ptr<probes::Probe>>;
  std::vector<std::pair<const probes::Entry*, Loaded>> loaded;
  // Only anatomy reads threads' records, and has to wait for their object.
  const bool in_order = config_.probes.anatomy.enabled;
  for (const bool later : {false, true}) {
    // The verifier works through each object on a CPU of its own.
    std::vector<std::pair<const probes::Entry*, std::future<Loaded>>> loading;
    for (const probes::Entry& entry : probes::registry()) {
      const bool waits = in_order && entry.threads == probes::Entry::Threads::read;
      if (entry.settings(config_).enabled && waits == later) {
        loading.emplace_back(&entry,
                             begin_beside([this, &entry, &environment] { return entry.load(config_, environment); }));
      }
    }
    for (auto& [entry, probe] : loading) {
      loaded.emplace_back(entry, probe.get());
      if (in_order && entry->threads == probes::Entry::Threads::kept && loaded.back().second) {
        environment.threads = &(*loaded.back().second)->object();
      }
    }
  }
  std::ranges::sort(loaded, {}, &decltype(loaded)::value_type::first);  // as the registry has them
  for (auto& [entry, probe] : loaded) {
    if (!probe) {
      spdlog::error("probe {} is left out: {}", entry->name, probe.error().message);
      failed_probes_.emplace_back(entry->name);
      continue;
    }
    report_hooks((*probe)->object());
    probes.push_back(std::move(*probe));
  }
  if (probes.empty()) {
    return fail("nothing can be observed: " + (failed_probes_.empty()
                                                   ? std::string("every probe is disabled in the configuration")
                                                   : "all enabled probes failed (see above)"));
  }
  return {};
}

Result<std::unique_ptr<App>> App::start(const Cli& cli, const config::Config& config, bool attach) {
  kernel::install_bpf_log();
  raise_descriptor_limit();
  const auto missing = kernel::missing_prerequisites(cli.btf_file);
  if (!missing.empty()) {
    return fail(join(missing), EPERM);
  }
  std::unique_ptr<App> app(new App(cli, config));
  auto paths = find_paths(cli, config);
  if (!paths) {
    return std::unexpected(paths.error());
  }
  app->cgroup_v1_ = paths->cgroup_v1;
  const std::string mountinfo = cli.procfs + "/self/mountinfo";
  app->hierarchies_ = {.v2 = paths->cgroupfs,
                       .cpu_v1 = targets::find_controller_mount(mountinfo, "cpu"),
                       .cpuset_v1 = targets::find_controller_mount(mountinfo, "cpuset"),
                       .freezer_v1 = targets::find_controller_mount(mountinfo, "freezer")};
  auto object = targets::load_targets_object(app->table_.indices(), app->cgroup_v1_,
                                             {.forced_method = {}, .btf_path = cli.btf_file, .attach = attach});
  if (!object) {
    return std::unexpected(object.error());
  }
  app->targets_object_ = std::move(*object);
  report_hooks(*app->targets_object_);
  std::vector<std::unique_ptr<probes::Probe>> probes;
  if (auto loaded = app->load_probes(attach, probes); !loaded) {
    return std::unexpected(loaded.error());
  }
  app->objects_ = {app->targets_object_.get()};
  std::vector<kernel::HealthSource> sources{kernel::health_of(*app->targets_object_, targets::kBoundedMaps)};
  for (const auto& probe : probes) {
    app->objects_.push_back(&probe->object());
    sources.push_back(kernel::health_of(probe->object(), probe->info().bounded_maps));
  }
  app->scraper_ = std::make_unique<scrape::Scraper>(config, std::move(probes), app->failed_probes_, std::move(sources),
                                                    app->table_);
  if (config.run_statistics) {
    auto statistics = kernel::enable_run_statistics();
    if (!statistics) {
      spdlog::warn("{}: run times are not exported", statistics.error().message);
    } else {
      app->run_statistics_ = std::move(*statistics);
    }
  }
  auto discovery = targets::Discovery::start(config, *app->targets_object_, *paths, app->table_, *app->scraper_);
  if (!discovery) {
    return std::unexpected(discovery.error());
  }
  app->discovery_ = std::move(*discovery);
  app->discovery_->on_added([scraper = app->scraper_.get()] { scraper->look_after(probes::Occasion::targets_added); });
  app->discovery_->on_looked([scraper = app->scraper_.get()] { scraper->look_after(probes::Occasion::half_minute); });
  app->scraper_->on_shed(
      [discovery = app->discovery_.get()](target_ref target, tacho_shed level) { discovery->set_shed(target, level); });
  app->scraper_->set_reload_state({true, unix_time()});
  app->run(std::chrono::steady_clock::now());
  if (!paths->cgroupfs.empty()) {
    report_names(paths->names, app->scraper_->view(scrape::summaries));
  }
  return app;
}

targets::Time App::run(targets::Time now, Liveness::Task* task) {
  const auto now_at = [task](std::string_view step) {
    if (task != nullptr) {
      task->now_at(step);
    }
  };
  service_manager_.alive(now);
  now_at("looking for targets");
  const targets::Time next = discovery_->run(now);
  if (now >= next_sample_) {
    now_at("sampling");
    scraper_->sample();
    if (scraper_->release_forgotten(now)) {
      discovery_->targets_freed();
    }
    scraper_->prepare();
    next_sample_ = std::max(next_sample_ + kSampleInterval, now + kSampleInterval / 2);
  }
  return std::min(next, next_sample_);
}

Result<void> App::reload() {
  service_manager_.reloading();
  auto done = read_again();
  service_manager_.ready(done ? "serves; configuration read again" : "serves; " + done.error().message);
  return done;
}

Result<void> App::read_again() {
  config::Config fresh;
  if (!cli_.config_file.empty()) {
    config::Loaded loaded = load_config(cli_.config_file);
    for (const config::Diagnostic& warning : loaded.warnings) {
      spdlog::warn("{}", config::format(warning, loaded.file_name));
    }
    std::vector<std::string> errors;
    for (const config::Diagnostic& error : loaded.errors) {
      errors.push_back(config::format(error, loaded.file_name));
      spdlog::error("{}", errors.back());
    }
    // Defaults would end every target that it names.
    if (loaded.empty) {
      errors.push_back(loaded.file_name +
                       ": it is empty; if somebody is writing it, reload once more, and better move a "
                       "complete file into its place; `{}` in it stands for the defaults");
      spdlog::error("{}", errors.back());
    }
    if (!errors.empty()) {
      scraper_->set_reload_state({false, scraper_->reload_state().success_time});
      return fail("the configuration is not changed: " + join(errors));
    }
    fresh = std::move(loaded.config);
  }
  // From here on `fresh` is what runs, once it is applied: so nothing else can take what waits for a start from it.
  if (const auto held = config::hold_back(config_, fresh); !held.empty()) {
    spdlog::warn("changes take effect only after a restart: {}", join(held));
  }
  if (auto done = discovery_->reconfigure(fresh); !done) {
    scraper_->set_reload_state({false, scraper_->reload_state().success_time});
    return done;
  }
  scraper_->reconfigure(fresh);
  config_ = std::move(fresh);
  scraper_->set_reload_state({true, unix_time()});
  run(std::chrono::steady_clock::now());
  spdlog::info("configuration read again: {} targets", table_.live());
  return {};
}

std::string App::blindness() const {
  if (!config_.probes.socket.enabled) {
    return {};
  }
  for (const kernel::BpfObject* object : objects_) {
    if (object->name() != "socket") {
      continue;
    }
    std::string missing;
    for (const kernel::HookState& hook : object->hooks()) {
      if (!hook.attached() && (hook.hook == "send" || hook.hook == "receive")) {
        missing += (missing.empty() ? "" : ", ") + std::string(hook.hook);
      }
    }
    return missing.empty() ? "" : "no request can be counted: hooks of probe socket are not attached: " + missing;
  }
  return "no request can be counted: probe socket could not be loaded";
}

std::vector<std::string> App::absent() {
  return discovery_->absent();
}

}  // namespace tacho
