#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "base/liveness.h"
#include "base/result.h"
#include "base/service_manager.h"
#include "base/unique_fd.h"
#include "cli.h"
#include "config/config.h"
#include "kernel/bpf_object.h"
#include "scrape/scraper.h"
#include "targets/discovery.h"
#include "targets/target_table.h"

namespace tacho {

/// Everything that observes: the BPF objects, the targets, the scraper. Members are in the order of ownership and are
/// destroyed in reverse: readers first, maps last. It belongs to one thread; others read what the scraper publishes.
class App {
 public:
  /// Loads and attaches what the configuration enables. A probe that fails is reported and left out; an error is
  /// returned if nothing at all can be observed.
  /// @param attach false: the hooks are loaded only (`tacho plan`)
  static Result<std::unique_ptr<App>> start(const Cli& cli, const config::Config& config, bool attach);

  App(const App&) = delete;
  App& operator=(const App&) = delete;
  ~App();

  /// Runs everything that is due at `now`, and reports its steps to `task`, if there is one. @return the latest time
  /// for the next call
  targets::Time run(targets::Time now, Liveness::Task* task = nullptr);
  /// Becomes readable when the kernel has reported events for discovery.
  [[nodiscard]] int descriptor() const { return discovery_->descriptor(); }
  void consume() { discovery_->consume(); }

  /// Reads the configuration file again; a bad one changes nothing. Called by the thread that calls run().
  Result<void> reload();

  [[nodiscard]] scrape::Scraper& scraper() { return *scraper_; }
  /// The object of the targets first, then those of the probes.
  [[nodiscard]] const std::vector<const kernel::BpfObject*>& objects() const { return objects_; }
  /// run() notifies it that its thread is alive, and of reloads.
  [[nodiscard]] ServiceManager& service_manager() { return service_manager_; }
  [[nodiscard]] std::vector<std::string> absent();
  /// Why no request can be counted at all; empty if requests can be counted.
  [[nodiscard]] std::string blindness() const;

  /// Hooks, targets and numbers of series, for `tacho plan`.
  void describe(std::ostream& out);

 private:
  App(const Cli& cli, const config::Config& config);
  Result<void> load_probes(bool attach, std::vector<std::unique_ptr<probes::Probe>>& probes);
  Result<void> read_again();

  ServiceManager service_manager_ = ServiceManager::from_environment();
  Cli cli_;
  config::Config config_;  // what runs
  UniqueFd run_statistics_;
  targets::TargetTable table_;
  std::unique_ptr<kernel::BpfObject> targets_object_;
  bool cgroup_v1_ = false;  // no v2 hierarchy: that of the v1 memory controller
  probes::CpuHierarchies hierarchies_;
  std::vector<std::string> failed_probes_;
  std::vector<const kernel::BpfObject*> objects_;
  std::unique_ptr<scrape::Scraper> scraper_;
  std::unique_ptr<targets::Discovery> discovery_;
  targets::Time next_sample_{};
};

}  // namespace tacho
