#include "web/server.h"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <utility>

#include "web/engine.h"
#include "web/gate.h"
#include "web/live_config.h"
#include "web/site.h"

namespace tacho::web {
namespace {

constexpr unsigned kWorkers = 8;  // a response each may be in memory
constexpr auto kGrace = std::chrono::milliseconds(500);
constexpr auto kLastResort = std::chrono::seconds(1);

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

Result<std::vector<Listener>> open_all(const std::vector<std::string>& addresses) {
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

}  // namespace

/// Owns all parts; they go in reverse order.
class Server::Impl {
 public:
  explicit Impl(std::vector<Route> routes) : site_(std::move(routes)) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  ~Impl() {
    gate_.reset();
    if (in_flight_ && !in_flight_->wait_until_idle(kGrace)) {
      in_flight_->cut_off_all();
      in_flight_->wait_until_idle(kLastResort);
    }
  }

  Result<void> start(const Options& options) {
    auto config = LiveConfig::load(options.web_config_file.value_or(""));
    if (!config) {
      return std::unexpected(config.error());
    }
    config_ = std::move(*config);
    auto listeners = open_all(options.listen_addresses);
    if (!listeners) {
      return std::unexpected(listeners.error());
    }
    for (const Listener& listener : *listeners) {
      addresses_.push_back(listener.bound());
    }
    auto in_flight = InFlight::create(kWorkers);
    if (!in_flight) {
      return std::unexpected(in_flight.error());
    }
    in_flight_ = std::move(*in_flight);
    return start_threads(std::move(*listeners));
  }

  [[nodiscard]] const std::vector<std::string>& addresses() const { return addresses_; }
  [[nodiscard]] const LiveConfig& config() const { return *config_; }
  [[nodiscard]] const GateCounters& counters() const { return gate_->counters(); }

 private:
  Result<void> start_threads(std::vector<Listener> listeners) {
    const SignalsBlocked blocked;
    auto engine = Engine::start(kWorkers, site_, *config_, *in_flight_);
    if (!engine) {
      return std::unexpected(engine.error());
    }
    engine_ = std::move(*engine);
    auto gate = Gate::open(std::move(listeners),
                           {.expects_tls = [this] { return expects_tls(); },
                            .hand_over = [this](int socket, bool tls) { return engine_->adopt(socket, tls); }},
                           *in_flight_);
    if (!gate) {
      return std::unexpected(gate.error());
    }
    gate_ = std::move(*gate);
    return {};
  }

  /// On the gate's thread, for every new connection.
  bool expects_tls() {
    try {
      if (auto context = config_->refresh()) {
        engine_->use(std::move(context));
      }
    } catch (const std::exception& error) {
      spdlog::error("web configuration not reloaded: {}", error.what());
    }
    return config_->tls();
  }

  Site site_;
  std::unique_ptr<LiveConfig> config_;
  std::vector<std::string> addresses_;
  std::unique_ptr<InFlight> in_flight_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Gate> gate_;
};

Result<std::unique_ptr<Server>> Server::start(const Options& options, std::vector<Route> routes) {
  std::signal(SIGPIPE, SIG_IGN);
  auto impl = std::make_unique<Impl>(std::move(routes));
  if (auto started = impl->start(options); !started) {
    return std::unexpected(started.error());
  }
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() = default;

std::vector<std::string> Server::addresses() const {
  return impl_->addresses();
}

bool Server::tls() const {
  return impl_->config().tls();
}

Statistics Server::statistics() const {
  const GateCounters& counters = impl_->counters();
  return {.accepted = counters.accepted,
          .timed_out = counters.timed_out,
          .displaced = counters.displaced,
          .cut_off = counters.cut_off};
}

}  // namespace tacho::web
