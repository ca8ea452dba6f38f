#include "kernel/support/running.h"

#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string_view>

#include "scrape/views.h"

namespace tacho::kernel_test {
namespace {

using Clock = std::chrono::steady_clock;

std::unique_ptr<Running>& shared_slot() {
  static std::unique_ptr<Running> running;
  return running;
}

/// The matrix (tests/matrix) runs these tests with one attach method after the other.
config::Config with_forced_method(config::Config config) {
  const std::map<std::string_view, config::Attach> methods{{"auto", config::Attach::automatic},
                                                           {"tracepoint", config::Attach::tracepoint},
                                                           {"fentry", config::Attach::fentry},
                                                           {"kprobe", config::Attach::kprobe},
                                                           {"raw_tracepoint", config::Attach::raw_tracepoint},
                                                           {"scheduler", config::Attach::scheduler}};
  if (const char* method = std::getenv("TACHO_TEST_ATTACH")) {
    for (const config::NamedProbe& probe : config::kProbes) {
      config::Attach& attach = (config.probes.*(probe.settings)).attach;
      attach = attach == config::Attach::automatic ? methods.at(method) : attach;
    }
  }
  return config;
}

}  // namespace

Running::Running(const config::Config& config, const std::string& config_file) {
  Cli cli;
  cli.config_file = config_file;
  auto app = App::start(cli, with_forced_method(config), true);
  INFO((app ? "" : app.error().message));
  REQUIRE(app);
  app_ = std::move(*app);
}

bool Running::wait_for(const std::function<bool()>& condition, std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  for (;;) {
    app_->consume();
    const auto next = app_->run(Clock::now());
    if (condition()) {
      return true;
    }
    const auto now = Clock::now();
    if (now > deadline) {
      return false;
    }
    // Ten milliseconds at most, for conditions that no event announces.
    const auto pause = std::clamp(std::chrono::duration_cast<std::chrono::milliseconds>(std::min(next, deadline) - now),
                                  std::chrono::milliseconds(0), std::chrono::milliseconds(10));
    pollfd news{.fd = app_->descriptor(), .events = POLLIN, .revents = 0};
    ::poll(&news, 1, static_cast<int>(pause.count()));
  }
}

bool Running::watches(const Labels& labels) {
  const auto targets = app_->scraper().view(tacho::scrape::summaries);
  return std::ranges::any_of(targets, [&labels](const scrape::TargetSummary& target) {
    const Labels has(target.labels.begin(), target.labels.end());
    return target.live && std::ranges::includes(has, labels);
  });
}

config::Config watching(const std::string& glob) {
  config::Config config;
  config::TargetRule rule;
  rule.name = "t";
  rule.cgroup = glob;
  config.targets.push_back(rule);
  config.idle_limit = std::chrono::seconds(4);
  config.histograms.buckets_per_octave = 4;
  config.probes.anatomy.enabled = true;
  return config;
}

Running& shared() {
  auto& slot = shared_slot();
  if (!slot) {
    slot = std::make_unique<Running>(watching(playground() + "/*"));
  }
  return *slot;
}

void stop_shared() {
  shared_slot().reset();
}

Watched::Watched() : cgroup_(playground() + "/" + unique_name()) {
  INFO("waiting for target " << path());
  REQUIRE(shared().wait_for([this] { return shared().watches({{"cgroup", path()}}); }));
}

double Watched::value(const std::string& name, Labels labels) const {
  labels["cgroup"] = path();
  return shared().page().value(name, labels);
}

}  // namespace tacho::kernel_test
