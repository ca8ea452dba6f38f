#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "app.h"
#include "config/config.h"
#include "kernel/support/cgroup.h"
#include "kernel/support/page.h"

namespace tacho::kernel_test {

/// A tacho in this process, run by whoever waits for something.
class Running {
 public:
  /// @param config_file what reload() reads
  explicit Running(const config::Config& config, const std::string& config_file = {});

  /// Lets it work until `condition` holds. @return whether it came to hold in time
  bool wait_for(const std::function<bool()>& condition, std::chrono::milliseconds patience = std::chrono::seconds(10));
  [[nodiscard]] Page page() {
    app_->scraper().read_by("test");
    return Page(app_->scraper().scrape(metrics::Format::prometheus_text));
  }
  /// Whether a target with these labels is there and live; scrapes nothing.
  [[nodiscard]] bool watches(const Labels& labels);
  [[nodiscard]] App& app() { return *app_; }

 private:
  std::unique_ptr<App> app_;
};

/// A configuration without discovery that watches cgroups by a glob, as target "t", with fine buckets.
config::Config watching(const std::string& glob);

/// The one tacho that most tests share: it watches every cgroup of the playground, each as a target of its own.
Running& shared();
/// At the end of the run.
void stop_shared();

/// A new cgroup that the shared tacho watches.
class Watched {
 public:
  Watched();

  [[nodiscard]] std::string directory() const { return cgroup_.directory(); }
  [[nodiscard]] const std::string& path() const { return cgroup_.path(); }
  [[nodiscard]] const Cgroup& cgroup() const { return cgroup_; }
  [[nodiscard]] double value(const std::string& name, Labels labels = {}) const;
  /// Count and sum of a histogram family.
  [[nodiscard]] double observations(const std::string& name, const Labels& labels = {}) const {
    return value(name + "_count", labels);
  }
  [[nodiscard]] double sum(const std::string& name, const Labels& labels = {}) const {
    return value(name + "_sum", labels);
  }
  [[nodiscard]] double sends() const { return value("tacho_socket_operations_total", {{"direction", "send"}}); }
  [[nodiscard]] double receives() const { return value("tacho_socket_operations_total", {{"direction", "receive"}}); }

 private:
  Cgroup cgroup_;
};

}  // namespace tacho::kernel_test
