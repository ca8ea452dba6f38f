#pragma once

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <catch2/catch.hpp>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "client.h"
#include "web/server.h"

namespace tacho::web::test {

/// What is logged during the test, instead of on its output.
class LogCapture {
 public:
  LogCapture() : before_(spdlog::default_logger()) {
    auto logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(stream_));
    logger->set_level(spdlog::level::debug);
    spdlog::set_default_logger(std::move(logger));
  }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;
  ~LogCapture() { spdlog::set_default_logger(before_); }

  /// Only while no server runs.
  [[nodiscard]] std::string text() const { return stream_.str(); }

 private:
  std::ostringstream stream_;
  std::shared_ptr<spdlog::logger> before_;
};

inline Response text_response(std::string body) {
  Response response;
  response.body = std::move(body);
  return response;
}

/// A server on a free port of 127.0.0.1 (or elsewhere), with its log captured.
class RunningServer {
 public:
  explicit RunningServer(std::vector<Route> routes, const std::string& web_config_file = {},
                         std::vector<std::string> addresses = {"127.0.0.1:0"}) {
    Options options{.listen_addresses = std::move(addresses), .web_config_file = std::nullopt};
    if (!web_config_file.empty()) {
      options.web_config_file = web_config_file;
    }
    auto started = Server::start(options, std::move(routes), liveness_);
    INFO((started ? "" : started.error().message));
    REQUIRE(started);
    server_ = std::move(*started);
  }

  [[nodiscard]] std::string address(std::size_t index = 0) const { return server_->addresses().at(index); }
  [[nodiscard]] Statistics statistics() const { return server_->statistics(); }
  void stop() { server_.reset(); }
  [[nodiscard]] std::string log() {
    stop();
    return log_.text();
  }

 private:
  LogCapture log_;
  Liveness liveness_;
  std::unique_ptr<Server> server_;
};

inline Route get_route(std::string path, Handler handler) {
  return {.path = std::move(path), .methods = {"GET"}, .handler = std::move(handler)};
}

/// One page, "/metrics", which says "up 1".
inline std::vector<Route> one_page() {
  return {get_route("/metrics", [](const Request&) { return text_response("up 1\n"); })};
}

}  // namespace tacho::web::test
