#include "web/engine.h"

#include <civetweb.h>
#include <spdlog/spdlog.h>

#include <array>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include "web/render.h"
#include "web/request_head.h"

namespace tacho::web {
namespace {

constexpr auto kTimeout = "5000";  // ms without progress on one connection

std::string text_or_empty(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}

Request read_request(const mg_request_info& info) {
  Request request{.method = text_or_empty(info.request_method),
                  .path = text_or_empty(info.local_uri_raw),
                  .query = text_or_empty(info.query_string),
                  .remote = std::begin(info.remote_addr),
                  .body = {},
                  .headers = {}};
  for (int i = 0; i < info.num_headers; ++i) {
    const mg_header& header = info.http_headers[i];
    request.headers.emplace_back(header.name, header.value);
  }
  return request;
}

/// Reads the body; false: it is larger than kMaxBody.
bool read_body(mg_connection* connection, const mg_request_info& info, std::string& body) {
  if (info.content_length > static_cast<long long>(kMaxBody)) {
    return false;
  }
  std::array<char, 8192> chunk;  // filled by mg_read
  for (int count = 0; (count = mg_read(connection, chunk.data(), chunk.size())) > 0;) {
    body.append(chunk.data(), static_cast<std::size_t>(count));
    if (body.size() > kMaxBody) {
      return false;
    }
  }
  return true;
}

}  // namespace

/// The C side of the engine: finds it, and lets no exception through.
struct Engine::Callbacks {
  static Engine& engine(const mg_connection* connection) {
    return *static_cast<Engine*>(mg_get_user_data(mg_get_context(connection)));
  }

  template <class Body>
  static void guarded(const Body& body) noexcept {
    try {
      body();
    } catch (const std::exception& error) {
      spdlog::error("web server: {}", error.what());
    } catch (...) {
      spdlog::error("web server: unknown exception");
    }
  }

  static int begin_request(mg_connection* connection) {
    guarded([&] { engine(connection).serve(connection); });
    return 200;  // any status: the request is dealt with
  }

  /// For what civetweb refuses before it is a request.
  static int http_error(mg_connection* connection, int status, const char* message) {
    guarded([&] {
      spdlog::debug("web server: {} {}", status, message);
      engine(connection).send(connection, error_response(status), false, std::nullopt);
    });
    return 0;
  }

  static int log_message(const mg_connection* /*connection*/, const char* message) {
    guarded([&] { spdlog::debug("web server: {}", message); });
    return 1;
  }

  static void connection_close(const mg_connection* connection) {
    guarded([&] { engine(connection).in_flight_.closing(mg_get_socket(connection)); });
  }

  static void connection_closed(const mg_connection* connection) {
    guarded([&] { engine(connection).in_flight_.closed(); });
  }
};

Result<std::unique_ptr<Engine>> Engine::start(unsigned workers, Site& site, const LiveConfig& config,
                                              InFlight& in_flight) {
  static std::once_flag once;
  std::call_once(once, [] { mg_init_library(MG_FEATURES_TLS | MG_FEATURES_IPV6 | MG_FEATURES_X_DOMAIN_SOCKET); });

  std::unique_ptr<Engine> engine(new Engine(site, config, in_flight));
  const std::string count = std::to_string(workers);
  const std::string head = std::to_string(kMaxRequestHead);
  std::array<const char*, 17> options{"listening_ports",
                                      "",  // the gate accepts
                                      "num_threads",
                                      count.c_str(),
                                      "connection_queue",
                                      count.c_str(),
                                      "max_request_size",
                                      head.c_str(),
                                      "request_timeout_ms",
                                      kTimeout,
                                      "enable_keep_alive",
                                      "no",  // an idle connection would hold a worker
                                      "decode_url",
                                      "no",  // "/metrics%00x" must not become "/metrics"
                                      "enable_auth_domain_check",
                                      "no",
                                      nullptr};
  mg_callbacks callbacks{};
  callbacks.begin_request = Callbacks::begin_request;
  callbacks.http_error = Callbacks::http_error;
  callbacks.log_message = Callbacks::log_message;
  callbacks.connection_close = Callbacks::connection_close;
  callbacks.connection_closed = Callbacks::connection_closed;
  std::array<char, 256> text{};
  mg_init_data init{.callbacks = &callbacks, .user_data = engine.get(), .configuration_options = options.data()};
  mg_error_data error{.code = 0, .code_sub = 0, .text = text.data(), .text_buffer_size = text.size()};
  engine->context_ = mg_start2(&init, &error);
  if (engine->context_ == nullptr) {
    return fail("cannot start the web server: " + std::string(text.data()));
  }
  return engine;
}

Engine::~Engine() {
  if (context_ != nullptr) {
    mg_stop(context_);
  }
}

bool Engine::adopt(int socket, bool tls) {
  return mg_adopt_connection(context_, socket, tls ? 1 : 0) == 0;
}

void Engine::use(SslContext context) {
  mg_use_ssl_ctx(context_, context.release());
}

void Engine::serve(mg_connection* connection) {
  mg_disable_connection_keep_alive(connection);  // else civetweb waits for a body that was refused
  const mg_request_info& info = *mg_get_request_info(connection);
  Request request = read_request(info);
  const bool complete = read_body(connection, info, request.body);
  in_flight_.handling(mg_get_socket(connection));
  Response response = complete ? site_.answer(request, *config_.policy()) : error_response(413);
  send(connection, std::move(response), request.method == "HEAD", request.header("Accept-Encoding"));
}

void Engine::send(mg_connection* connection, Response response, bool head_only,
                  std::optional<std::string> accept_encoding) {
  const Rendered rendered = render(
      std::move(response),
      {.head_only = head_only, .accept_encoding = std::move(accept_encoding), .headers = config_.policy()->headers});
  in_flight_.sending(mg_get_socket(connection), InFlight::Clock::now());
  if (mg_write(connection, rendered.head.data(), rendered.head.size()) > 0 && !rendered.body.empty()) {
    mg_write(connection, rendered.body.data(), rendered.body.size());
  }
}

}  // namespace tacho::web
