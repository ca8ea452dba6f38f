#include "serve.h"

#include <malloc.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "answers.h"
#include "app.h"
#include "base/liveness.h"
#include "base/unique_fd.h"
#include "base/version.h"
#include "config/web_config_file.h"
#include "kernel/kernel_types.h"
#include "metrics/exposition.h"
#include "process/confine.h"
#include "process/web_keeper.h"
#include "reload.h"
#include "top/health.h"
#include "watch.h"
#include "web/listener.h"

namespace tacho {
namespace {

using namespace std::chrono_literals;

/// SIGHUP as a descriptor; blocked in every thread from here on.
Result<UniqueFd> hangup_descriptor() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGHUP);
  if (::pthread_sigmask(SIG_BLOCK, &signals, nullptr) != 0) {
    return fail_errno("cannot block signals");
  }
  UniqueFd descriptor(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!descriptor) {
    return fail_errno("cannot receive signals");
  }
  return descriptor;
}

/// What the main loop waits for, besides the app's own news.
struct Loop {
  Liveness liveness;
  std::unique_ptr<Watch> watch;
  UniqueFd hangups;
  ReloadQueue reloads;

  /// @param publish as Watch::start()
  Result<void> open(Watch::Publish publish = {}) {
    auto hangup = hangup_descriptor();
    if (!hangup) {
      return std::unexpected(hangup.error());
    }
    hangups = std::move(*hangup);
    auto started = Watch::start(liveness, std::move(publish));
    if (!started) {
      return std::unexpected(started.error());
    }
    watch = std::move(*started);
    return {};
  }

  /// Many signals are one reload.
  void take_hangups() {
    signalfd_siginfo info{};
    while (::read(hangups.get(), &info, sizeof(info)) == sizeof(info)) {
      reloads.want();
    }
  }
};

int timeout_ms(targets::Time until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

/// Runs the app until `until` or a signal. @return the signal, 0 if the time is over
int run_until(App& app, Loop& loop, targets::Time until) {
  auto task = loop.liveness.begin("the main loop");
  while (loop.watch->signal() == 0) {
    const targets::Time now = std::chrono::steady_clock::now();
    if (now >= until) {
      return 0;
    }
    const targets::Time next = std::min({app.run(now, &task), until, loop.reloads.due()});
    task.now_at("waiting for news");
    std::array<pollfd, 4> events{pollfd{loop.watch->descriptor(), POLLIN, 0}, pollfd{app.descriptor(), POLLIN, 0},
                                 pollfd{loop.reloads.descriptor(), POLLIN, 0}, pollfd{loop.hangups.get(), POLLIN, 0}};
    if (::poll(events.data(), events.size(), timeout_ms(next)) < 0) {
      continue;
    }
    if ((events[1].revents & POLLIN) != 0) {
      task.now_at("taking the kernel's news");
      app.consume();
    }
    if ((events[2].revents & POLLIN) != 0) {
      loop.reloads.consume();
    }
    if ((events[3].revents & POLLIN) != 0) {
      loop.take_hangups();
    }
    task.now_at("reading the configuration");
    loop.reloads.serve([&app] { return app.reload(); }, std::chrono::steady_clock::now());
  }
  return loop.watch->signal();
}

scrape::WebCounters counters_of(process::WebKeeper& keeper) {
  const process::SharedState& shared = keeper.shared();
  const web::GateCounters& now = shared.counters;
  return {.open = now.open,
          .accepted = now.accepted,
          .lost = {{"no_request", now.timed_out},
                   {"crowded_out", now.displaced},
                   {"slow_reader", now.cut_off},
                   {"busy", now.refused}},
          .starts = keeper.starts(),
          .cpu_seconds = static_cast<double>(shared.cpu_ns) * 1e-9,
          .dropped_log_lines = shared.dropped_lines};
}

/// Of this process, and of the one that serves the network.
class RightsOfAll {
 public:
  RightsOfAll(const process::WebKeeper& keeper, std::vector<std::string> lacks)
      : keeper_(keeper), lacks_(std::move(lacks)) {}

  std::vector<process::Rights> read() {
    std::vector<process::Rights> all;
    if (auto own = own_.read(::getpid())) {
      own->lacks = lacks_;
      all.push_back(std::move(*own));
    }
    if (auto web = keeper_.web_rights()) {
      all.push_back(std::move(*web));
    }
    return all;
  }

 private:
  const process::WebKeeper& keeper_;
  const std::vector<std::string> lacks_;
  process::RightsReader own_{"collector"};
};

std::string names_of(const process::Rights& rights) {
  const auto names = process::capability_names(rights.capabilities);
  return names.empty() ? "no capability" : fmt::format("the capabilities {}", fmt::join(names, ", "));
}

/// Whether targets are found by what a process runs: the path of another user's executable takes a capability.
bool has_executable(const config::Config& config) {
  return std::ranges::any_of(config.targets,
                             [](const config::TargetRule& rule) { return rule.process && rule.process->exe; });
}

int failed(const Error& error) {
  spdlog::error("{}", error.message);
  return kExitFailed;
}

/// Errors of the call, not the end of all that was counted: nobody reads the log any more; no file may be so long.
void ignore_signals_of_writing() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace

int serve(const Cli& cli, const config::Config& config, MoreRoutes more_routes) {
  const auto begin = std::chrono::steady_clock::now();
  spdlog::info("tacho {} starts", version());
  ignore_signals_of_writing();
  // Before anything else: what is forked here has one thread, and nothing that it must not have.
  auto keeper = process::WebKeeper::prepare({.listen_addresses = cli.listen_addresses,
                                             .web_config_file = cli.web_config_file,
                                             .telemetry_path = cli.telemetry_path,
                                             .lifecycle = cli.enable_lifecycle,
                                             .more_routes = std::move(more_routes)});
  if (!keeper) {
    return failed(keeper.error());
  }
  process::SharedState& shared = (*keeper)->shared();
  Loop loop;
  if (auto opened = loop.open([&shared](const auto& stuck) { shared.beat(stuck); }); !opened) {
    return failed(opened.error());
  }
  auto app = App::start(cli, config, true);
  if (!app) {
    return failed(app.error());
  }
  // A service that counts no request must not look started; others learn it from /-/ready.
  const std::string blindness = (*app)->blindness();
  if ((*app)->service_manager().asks() && !blindness.empty()) {
    return failed(Error{blindness, EPERM});
  }
  shared.set_blindness(blindness);
  // All programs are loaded: what that took, 18 MB, is not needed again, and would stay between what is.
  kernel::forget_types();
  ::malloc_trim(0);
  const std::vector<std::string> lacks = process::confine_collector(
      {.tells_service_manager = (*app)->service_manager().asks(), .reads_executables = has_executable(config)});
  const auto held = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  Answers answers(**app, loop.reloads, loop.liveness);
  const auto rights_of_all = std::make_shared<RightsOfAll>(**keeper, lacks);
  (*app)->scraper().observe_processes([rights_of_all] { return rights_of_all->read(); });
  (*app)->scraper().observe_web([raw = keeper->get()] { return counters_of(*raw); });
  const auto served =
      (*keeper)->serve([&answers](const boundary::Question& question) { return answers.make(question); },
                       [&watch = *loop.watch] { watch.end(kExitFailed); });
  if (!served) {
    keeper->reset();  // asks nothing any more
    return failed(served.error());
  }
  for (const process::Rights& rights : rights_of_all->read()) {
    spdlog::info("{} (process {}, uid {}) holds {}{}", rights.process, rights.pid, rights.uid, names_of(rights),
                 rights.process == "collector" ? fmt::format(", {} ms after the start", held.count()) : "");
  }
  for (const std::string& address : (*keeper)->addresses()) {
    spdlog::info("listening on {}{}", address, (*keeper)->tls() ? " (TLS)" : "");
  }
  (*app)->service_manager().ready("serves");
  run_until(**app, loop, targets::Time::max());
  (*app)->service_manager().stopping();
  loop.reloads.close();
  keeper->reset();
  loop.watch->only_kernel_is_left();
  return loop.watch->code();
}

int once(const Cli& cli, const config::Config& config) {
  Loop loop;
  if (auto opened = loop.open(); !opened) {
    return failed(opened.error());
  }
  auto app = App::start(cli, config, true);
  if (!app) {
    return failed(app.error());
  }
  // Two samples of the windowed gauges.
  if (run_until(**app, loop, std::chrono::steady_clock::now() + 1200ms) != 0) {
    return kExitFailed;
  }
  std::cout << (*app)->scraper().scrape(metrics::Format::prometheus_text);
  return kExitOk;
}

int plan(const Cli& cli, const config::Config& config) {
  auto app = App::start(cli, config, false);
  if (!app) {
    return failed(app.error());
  }
  (*app)->describe(std::cout);
  return kExitOk;
}

int health(const Cli& cli) {
  top::Url url;
  if (!cli.web_config_file.empty()) {
    const auto web = config::read_web_config(cli.web_config_file);
    if (!web) {
      return failed(web.error());
    }
    url.tls = web->tls.has_value();
  }
  const auto address = web::ListenAddress::parse(cli.listen_addresses.front());
  if (!address) {
    return failed(address.error());
  }
  if (address->is_unix) {
    url.host = "localhost";
    url.port = "80";  // which HTTP has to be told, though nobody uses it
    url.socket = address->host;
  } else {
    // Who listens on every address listens on loopback. By number: a container may have no /etc/hosts.
    url.host = address->host == "::" || address->host == "0.0.0.0" ? "" : address->host;
    url.port = std::to_string(address->port);
  }
  const auto well = top::ask_health(std::move(url));
  return well ? kExitOk : failed(well.error());
}

}  // namespace tacho
