#include "serve.h"

#include <malloc.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <future>
#include <iostream>
#include <mutex>
#include <vector>

#include "app.h"
#include "base/unique_fd.h"
#include "base/version.h"
#include "config/web_config_file.h"
#include "endpoints.h"
#include "kernel/kernel_types.h"
#include "metrics/exposition.h"
#include "web/health.h"
#include "web/server.h"

namespace tacho {
namespace {

using namespace std::chrono_literals;

/// Signals as a descriptor; blocked in every thread from here on.
Result<UniqueFd> signal_descriptor() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    sigaddset(&signals, signal);
  }
  if (::pthread_sigmask(SIG_BLOCK, &signals, nullptr) != 0) {
    return fail_errno("cannot block signals");
  }
  UniqueFd descriptor(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!descriptor) {
    return fail_errno("cannot receive signals");
  }
  return descriptor;
}

/// Hands reloads from the web threads to the thread that owns the app.
class ReloadQueue {
 public:
  ReloadQueue() : event_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

  [[nodiscard]] int descriptor() const { return event_.get(); }

  /// Asks and waits; on a web thread.
  Result<void> ask() {
    std::future<Result<void>> answer;
    {
      const std::lock_guard lock(mutex_);
      if (closed_) {
        return fail("tacho is about to end");
      }
      answer = waiting_.emplace_back().get_future();
    }
    const std::uint64_t one = 1;
    if (::write(event_.get(), &one, sizeof(one)) != sizeof(one)) {
      return fail_errno("cannot ask for a reload");
    }
    return answer.get();
  }

  /// Answers all who wait; on the thread that owns the app.
  void serve(App& app) {
    std::uint64_t count = 0;
    if (::read(event_.get(), &count, sizeof(count)) < 0) {
      return;
    }
    answer(take(false), [&app] { return app.reload(); });
  }

  void close() {
    answer(take(true), [] { return Result<void>(fail("tacho is about to end")); });
  }

 private:
  using Waiting = std::vector<std::promise<Result<void>>>;

  Waiting take(bool close) {
    const std::lock_guard lock(mutex_);
    closed_ = closed_ || close;
    return std::exchange(waiting_, {});
  }

  template <class Outcome>
  static void answer(Waiting waiting, Outcome outcome) {
    if (waiting.empty()) {
      return;
    }
    const Result<void> result = outcome();
    for (auto& promise : waiting) {
      promise.set_value(result);
    }
  }

  UniqueFd event_;
  std::mutex mutex_;
  Waiting waiting_;
  bool closed_ = false;
};

/// @return the signal that ends the program, 0 for none
int take_signals(int descriptor, App& app) {
  signalfd_siginfo info{};
  while (::read(descriptor, &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo != SIGHUP) {
      return static_cast<int>(info.ssi_signo);
    }
    if (auto done = app.reload(); !done) {
      spdlog::error("{}", done.error().message);
    }
  }
  return 0;
}

int timeout_ms(targets::Time until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

/// Runs the app until `until` or a signal. @return the signal, 0 if the time is over
int run_until(App& app, int signals, ReloadQueue& reloads, targets::Time until) {
  while (true) {
    const targets::Time now = std::chrono::steady_clock::now();
    if (now >= until) {
      return 0;
    }
    const targets::Time next = std::min(app.run(now), until);
    std::array<pollfd, 3> events{pollfd{signals, POLLIN, 0}, pollfd{app.descriptor(), POLLIN, 0},
                                 pollfd{reloads.descriptor(), POLLIN, 0}};
    if (::poll(events.data(), events.size(), timeout_ms(next)) < 0) {
      continue;
    }
    if ((events[0].revents & POLLIN) != 0) {
      if (const int signal = take_signals(signals, app); signal != 0) {
        return signal;
      }
    }
    if ((events[1].revents & POLLIN) != 0) {
      app.consume();
    }
    if ((events[2].revents & POLLIN) != 0) {
      reloads.serve(app);
    }
  }
}

int failed(const Error& error) {
  spdlog::error("{}", error.message);
  return kExitFailed;
}

}  // namespace

int serve(const Cli& cli, const config::Config& config) {
  auto signals = signal_descriptor();
  if (!signals) {
    return failed(signals.error());
  }
  spdlog::info("tacho {} starts", version());
  auto app = App::start(cli, config, true);
  if (!app) {
    return failed(app.error());
  }
  // All programs are loaded: what that took, 18 MB, is not needed again, and would stay between what is.
  kernel::forget_types();
  ::malloc_trim(0);
  ReloadQueue reloads;
  const EndpointContext context{app->get(), cli.telemetry_path, [&reloads] { return reloads.ask(); }};
  web::Options options;
  options.listen_addresses = cli.listen_addresses;
  if (!cli.web_config_file.empty()) {
    options.web_config_file = cli.web_config_file;
  }
  auto server = web::Server::start(options, endpoints(context));
  if (!server) {
    return failed(server.error());
  }
  for (const std::string& address : (*server)->addresses()) {
    spdlog::info("listening on {}{}", address, (*server)->tls() ? " (TLS)" : "");
  }
  (*app)->service_manager().ready("serves");
  const int signal = run_until(**app, signals->get(), reloads, targets::Time::max());
  (*app)->service_manager().stopping();
  spdlog::info("ending on signal {}", ::strsignal(signal));
  reloads.close();
  server->reset();
  return kExitOk;
}

int once(const Cli& cli, const config::Config& config) {
  auto signals = signal_descriptor();
  if (!signals) {
    return failed(signals.error());
  }
  auto app = App::start(cli, config, true);
  if (!app) {
    return failed(app.error());
  }
  ReloadQueue reloads;
  // Two samples of the windowed gauges.
  if (run_until(**app, signals->get(), reloads, std::chrono::steady_clock::now() + 1200ms) != 0) {
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
