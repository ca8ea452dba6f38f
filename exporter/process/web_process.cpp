#include "process/web_process.h"

#include <openssl/ssl.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include <cstdint>
#include <ctime>
#include <iterator>
#include <memory>
#include <utility>

#include "base/log.h"
#include "boundary/lane.h"
#include "endpoints.h"
#include "process/filters.h"
#include "process/messages.h"
#include "stuck_report.h"
#include "web/bundle.h"
#include "web/server.h"

namespace tacho::process {
namespace {

constexpr int kLookEveryMs = 1000;

std::uint64_t cpu_time_ns() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(used.tv_nsec);
}

class WebProcess {
 public:
  WebProcess(WebSide side, UniqueFd control) : side_(std::move(side)), control_(std::move(control)) {}
  WebProcess(const WebProcess&) = delete;
  WebProcess& operator=(const WebProcess&) = delete;
  ~WebProcess() = default;

  int run() {
    if (!prepare()) {
      return 1;
    }
    while (true) {
      pollfd news{.fd = control_.get(), .events = POLLIN, .revents = 0};
      if (::poll(&news, 1, kLookEveryMs) > 0) {
        const ReceivedMessage got = receive(control_.get());
        if (got.message.kind == Message::Kind::none) {
          break;
        }
        take(got);
      }
      look();
      if (collector_->has_ended()) {
        return 1;  // the next one has lanes of its own
      }
    }
    server_.reset();
    look();
    return 0;
  }

 private:
  bool prepare() {
    while (true) {
      ReceivedMessage got = receive(control_.get());
      switch (got.message.kind) {
        case Message::Kind::none:
          return false;
        case Message::Kind::listener:
          listeners_.push_back(
              web::Listener::adopt(std::move(got.descriptor), got.message.text(), got.message.number != 0));
          break;
        case Message::Kind::lane:
          lanes_.push_back(std::move(got.descriptor));
          break;
        case Message::Kind::serve:
          return serve();
        default:
          take(got);
      }
    }
  }

  /// The web configuration, as it is now.
  void take(const ReceivedMessage& got) {
    if (got.message.kind != Message::Kind::bundle) {
      return;
    }
    const auto text = boundary::MappedText::map(got.descriptor);
    auto bundle = text ? web::Bundle::parse(text->view()) : std::nullopt;
    if (bundle) {
      files_.set(std::move(*bundle));
    }
  }

  bool serve() {
    web::Options options;
    if (!side_.web_config_file.empty()) {
      options.web_config_file = side_.web_config_file;
    }
    options.files = &files_;
    options.own_names = side_.own_names;
    options.counters = &side_.shared->counters;
    options.regulars = &side_.shared->regulars;
    collector_ = std::make_unique<boundary::FarCollector>(std::move(lanes_));
    std::vector<web::Route> routes = endpoints({.collector = collector_.get(),
                                                .telemetry_path = side_.telemetry_path,
                                                .lifecycle = side_.lifecycle,
                                                .stuck = [this] { return stuck(); },
                                                .blindness = side_.shared->blindness()});
    if (side_.more_routes) {
      std::ranges::move(side_.more_routes(), std::back_inserter(routes));
    }
    auto server = web::Server::start(options, std::move(listeners_), std::move(routes), liveness_);
    if (!server) {
      send(control_.get(), Message(Message::Kind::failed, server.error().message));
      return false;
    }
    server_ = std::move(*server);
    if (auto done = forbid_threads(); !done) {
      spdlog::warn("the web process may start threads: {}", done.error().message);
    }
    return send(control_.get(), Message(Message::Kind::serving));
  }

  /// The collector's own words come first: they say more.
  [[nodiscard]] std::optional<std::string> stuck() const {
    auto found = side_.shared->stuck();
    if (!found) {
      found = liveness_.stuck();
    }
    return found ? std::optional(found->text()) : std::nullopt;
  }

  void look() {
    // What the collector says of itself stands in its log.
    report_.look(side_.shared->stuck() ? std::nullopt : liveness_.stuck());
    // Who waits for a collector that hangs is not helped by a new web process.
    if (side_.shared->stuck() || !liveness_.stuck()) {
      ++side_.shared->beats;
    }
    const std::uint64_t dropped = dropped_log_lines();
    side_.shared->dropped_lines += dropped - std::exchange(dropped_, dropped);
    const std::uint64_t used = cpu_time_ns();
    side_.shared->cpu_ns += used - std::exchange(used_ns_, used);
  }

  WebSide side_;
  UniqueFd control_;
  std::vector<UniqueFd> lanes_;
  std::unique_ptr<boundary::FarCollector> collector_;
  web::BundledFiles files_;
  std::vector<web::Listener> listeners_;
  Liveness liveness_;
  StuckReport report_;
  std::uint64_t dropped_ = 0;
  std::uint64_t used_ns_ = 0;
  std::unique_ptr<web::Server> server_;
};

}  // namespace

int run_web(WebSide side, UniqueFd control) {
  if (auto done = install(Filter::web); !done) {
    spdlog::warn("the web process: {}", done.error().message);
  }
  return std::make_unique<WebProcess>(std::move(side), std::move(control))->run();
}

}  // namespace tacho::process
