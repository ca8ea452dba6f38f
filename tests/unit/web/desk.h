#pragma once

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client.h"
#include "web/gate.h"

namespace tacho::web::test {

using std::chrono_literals::operator""ms;

inline Response text(std::string body) {
  Response response;
  response.body = std::move(body);
  return response;
}

inline constexpr std::size_t kLarge = 8'000'000;  // fits into no socket buffer
inline constexpr std::size_t kMedium =
    40'000;  // fits into the kernel's part of a connection, and not into a small window

/// A gate with handlers that the test lets go on.
class Desk {
 public:
  /// @param web_config file of the web configuration; empty: none
  explicit Desk(const GateLimits& limits = {}, const std::string& web_config = {}) {
    auto config = LiveConfig::load(web_config);
    REQUIRE(config);
    config_ = std::move(*config);
    auto listener = Listener::open(*ListenAddress::parse("127.0.0.1:0"));
    REQUIRE(listener);
    address_ = listener->bound();
    std::vector<Listener> listeners;
    listeners.push_back(std::move(*listener));
    auto gate = Gate::open(std::move(listeners), site_, *config_, liveness_, limits);
    REQUIRE(gate);
    gate_ = std::move(*gate);
  }
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;
  ~Desk() {
    go.release(1000);
    gate_.reset();
  }

  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] const GateCounters& counters() const { return gate_->counters(); }

  std::counting_semaphore<> begun{0};  ///< released by each handler that begins
  std::counting_semaphore<> go{0};     ///< taken by each handler before it ends
  std::atomic<int> pages = 0;
  std::atomic<int> asked = 0;

 private:
  std::vector<Route> routes() {
    const auto slow = [this] {
      begun.release();
      go.acquire();
    };
    const auto type = [this](const Request&) {
      ++asked;
      return std::string("text/plain");
    };
    return {
        {.path = "/now", .methods = {"GET"}, .handler = [](const Request&) { return text("now"); }, .immediate = true},
        {.path = "/fast", .methods = {"GET"}, .handler = [](const Request&) { return text("fast"); }},
        {.path = "/medium",
         .methods = {"GET"},
         .handler = [](const Request&) { return text(std::string(kMedium, 'x')); }},
        {.path = "/slow",
         .methods = {"GET"},
         .handler =
             [slow](const Request& request) {
               slow();
               return text(request.remote);
             }},
        {.path = "/large",
         .methods = {"GET"},
         .handler = [](const Request&) { return text(std::string(kLarge, 'x')); }},
        {.path = "/page",
         .methods = {"GET"},
         .page = SharedPage{.content_type = type,
                            .make =
                                [this, slow](const std::string&) {
                                  slow();
                                  return Pieces{"page ", std::to_string(++pages)};
                                }}},
        {.path = "/heavy", .methods = {"GET"}, .page = SharedPage{.content_type = type, .make = [](const std::string&) {
                                                                    return Pieces{std::string(kLarge, 'x')};
                                                                  }}}};
  }

  Site site_{routes()};
  std::unique_ptr<LiveConfig> config_;
  Liveness liveness_;
  std::string address_;
  std::unique_ptr<Gate> gate_;
};

template <class Condition>
bool eventually(const Condition& condition) {
  const auto start = std::chrono::steady_clock::now();
  while (since(start) < 10'000ms) {
    if (condition()) {
      return true;
    }
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

inline std::string body(const Client& client) {
  return Reply::parse(client.read_all()).body;
}

}  // namespace tacho::web::test
