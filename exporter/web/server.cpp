#include "web/server.h"

#include <pthread.h>

#include <csignal>
#include <utility>

#include "web/gate.h"
#include "web/live_config.h"
#include "web/site.h"

namespace tacho::web {
namespace {

/// Threads started meanwhile take no signals: those are for the program's main thread.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace

Result<std::vector<Listener>> open_listeners(const std::vector<std::string>& addresses) {
  if (addresses.empty()) {
    return fail("no address to listen on: give --web.listen-address, as in :9100");
  }
  std::vector<Listener> listeners;
  for (const std::string& text : addresses) {
    const auto address = ListenAddress::parse(text);
    if (!address) {
      return std::unexpected(address.error());
    }
    auto listener = Listener::open(*address);
    if (!listener) {
      return std::unexpected(listener.error());
    }
    listeners.push_back(std::move(*listener));
  }
  return listeners;
}

/// Owns all parts; they go in reverse order.
class Server::Impl {
 public:
  Impl(const Options& options, std::vector<Route> routes, Liveness& liveness)
      : site_(std::move(routes), options.own_names ? *options.own_names : OwnNames::of_this_machine()),
        liveness_(liveness) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<void> start(const Options& options, std::vector<Listener> listeners) {
    auto config = LiveConfig::load(options.web_config_file.value_or(""),
                                   options.files != nullptr ? *options.files : Files::on_disk());
    if (!config) {
      return std::unexpected(config.error());
    }
    config_ = std::move(*config);
    if (listeners.empty()) {
      auto opened = open_listeners(options.listen_addresses);
      if (!opened) {
        return std::unexpected(opened.error());
      }
      listeners = std::move(*opened);
    }
    for (const Listener& listener : listeners) {
      addresses_.push_back(listener.bound());
    }
    const SignalsBlocked blocked;
    auto gate = Gate::open(std::move(listeners), site_, *config_, liveness_, {}, options.counters, options.regulars);
    if (!gate) {
      return std::unexpected(gate.error());
    }
    gate_ = std::move(*gate);
    return {};
  }

  [[nodiscard]] const std::vector<std::string>& addresses() const { return addresses_; }
  [[nodiscard]] const GateCounters& counters() const { return gate_->counters(); }

 private:
  Site site_;
  Liveness& liveness_;
  std::unique_ptr<LiveConfig> config_;
  std::vector<std::string> addresses_;
  std::unique_ptr<Gate> gate_;
};

Result<std::unique_ptr<Server>> Server::start(const Options& options, std::vector<Route> routes, Liveness& liveness) {
  return start(options, {}, std::move(routes), liveness);
}

Result<std::unique_ptr<Server>> Server::start(const Options& options, std::vector<Listener> listeners,
                                              std::vector<Route> routes, Liveness& liveness) {
  std::signal(SIGPIPE, SIG_IGN);
  auto impl = std::make_unique<Impl>(options, std::move(routes), liveness);
  if (auto started = impl->start(options, std::move(listeners)); !started) {
    return std::unexpected(started.error());
  }
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() = default;

std::vector<std::string> Server::addresses() const {
  return impl_->addresses();
}

Statistics Server::statistics() const {
  const GateCounters& counters = impl_->counters();
  return {.accepted = counters.accepted,
          .timed_out = counters.timed_out,
          .displaced = counters.displaced,
          .cut_off = counters.cut_off,
          .refused = counters.refused,
          .open = counters.open};
}

}  // namespace tacho::web
