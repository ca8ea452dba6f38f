#include "web/site.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>

#include "web/render.h"

namespace tacho::web {
namespace {

bool allows(const Route& route, std::string_view method) {
  return std::ranges::find(route.methods, method == "HEAD" ? "GET" : method) != route.methods.end();
}

std::string allowed(const Route& route) {
  std::string list;
  for (const std::string& method : route.methods) {
    list += (list.empty() ? "" : ", ") + method + (method == "GET" ? ", HEAD" : "");
  }
  return list;
}

Response call(const Route& route, const Request& request) {
  try {
    return route.handler(request);
  } catch (const std::exception& error) {
    spdlog::error("{} {} failed: {}", request.method, route.path, error.what());
  } catch (...) {
    spdlog::error("{} {} failed", request.method, route.path);
  }
  return error_response(500);
}

}  // namespace

Response error_response(int status) {
  Response response;
  response.status = status;
  response.body = std::string(reason_phrase(status)) + '\n';
  return response;
}

Response Site::answer(const Request& request, const Policy& policy) {
  if (policy.limiter && !policy.limiter->take(RateLimiter::Clock::now())) {
    return error_response(429);
  }
  switch (auth_.check(policy.users, request.header("Authorization"))) {
    case Login::granted:
      return route(request);
    case Login::busy: {
      Response response = error_response(503);
      response.headers.emplace_back("Retry-After", "1");
      return response;
    }
    case Login::denied:
      break;
  }
  Response response = error_response(401);
  response.headers.emplace_back("WWW-Authenticate", R"(Basic realm="tacho", charset="UTF-8")");
  return response;
}

Response Site::route(const Request& request) const {
  const auto found = std::ranges::find(routes_, request.path, &Route::path);
  if (found == routes_.end()) {
    return error_response(404);
  }
  if (!allows(*found, request.method)) {
    Response response = error_response(405);
    response.headers.emplace_back("Allow", allowed(*found));
    return response;
  }
  return call(*found, request);
}

}  // namespace tacho::web
