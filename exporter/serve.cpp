#include "serve.h"

#include <malloc.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <iostream>
#include <vector>

#include "app.h"
#include "base/liveness.h"
#include "base/unique_fd.h"
#include "base/version.h"
#include "config/web_config_file.h"
#include "endpoints.h"
#include "kernel/kernel_types.h"
#include "metrics/exposition.h"
#include "reload.h"
#include "watch.h"
#include "web/health.h"
#include "web/server.h"

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

  Result<void> open() {
    auto hangup = hangup_descriptor();
    if (!hangup) {
      return std::unexpected(hangup.error());
    }
    hangups = std::move(*hangup);
    auto started = Watch::start(liveness);
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

int failed(const Error& error) {
  spdlog::error("{}", error.message);
  return kExitFailed;
}

}  // namespace

int serve(const Cli& cli, const config::Config& config) {
  Loop loop;
  if (auto opened = loop.open(); !opened) {
    return failed(opened.error());
  }
  spdlog::info("tacho {} starts", version());
  auto app = App::start(cli, config, true);
  if (!app) {
    return failed(app.error());
  }
  // A service that counts no request must not look started; others learn it from /-/ready.
  if (const std::string blindness = (*app)->blindness(); (*app)->service_manager().asks() && !blindness.empty()) {
    return failed(Error{blindness, EPERM});
  }
  // All programs are loaded: what that took, 18 MB, is not needed again, and would stay between what is.
  kernel::forget_types();
  ::malloc_trim(0);
  const EndpointContext context{.app = app->get(),
                                .telemetry_path = cli.telemetry_path,
                                .lifecycle = cli.enable_lifecycle,
                                .reload = [&loop] { return loop.reloads.ask(); },
                                .liveness = &loop.liveness};
  web::Options options;
  options.listen_addresses = cli.listen_addresses;
  if (!cli.web_config_file.empty()) {
    options.web_config_file = cli.web_config_file;
  }
  auto server = web::Server::start(options, endpoints(context), loop.liveness);
  if (!server) {
    return failed(server.error());
  }
  (*app)->scraper().observe_web([raw = server->get()] {
    const web::Statistics now = raw->statistics();
    return scrape::WebCounters{.open = now.open,
                               .accepted = now.accepted,
                               .lost = {{"no_request", now.timed_out},
                                        {"crowded_out", now.displaced},
                                        {"slow_reader", now.cut_off},
                                        {"busy", now.refused}}};
  });
  for (const std::string& address : (*server)->addresses()) {
    spdlog::info("listening on {}{}", address, (*server)->tls() ? " (TLS)" : "");
  }
  (*app)->service_manager().ready("serves");
  run_until(**app, loop, targets::Time::max());
  (*app)->service_manager().stopping();
  loop.reloads.close();
  server->reset();
  loop.watch->only_kernel_is_left();
  return kExitOk;
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
  std::cout << (*app)->scraper().scrape(metrics::Format::prometheus_text) << std::flush;
  return std::cout ? kExitOk : kExitFailed;
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
  constexpr std::chrono::seconds kPatience(2);
  bool tls = false;
  if (!cli.web_config_file.empty()) {
    const auto web = config::read_web_config(cli.web_config_file);
    if (!web) {
      return failed(web.error());
    }
    tls = web->tls.has_value();
  }
  const auto address = web::ListenAddress::parse(cli.listen_addresses.front());
  const auto well =
      address ? web::ask_health(*address, tls, kPatience) : Result<void>(std::unexpected(address.error()));
  return well ? kExitOk : failed(well.error());
}

}  // namespace tacho
