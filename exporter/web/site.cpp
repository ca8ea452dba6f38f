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

/// A page of somebody else's in a browser of this machine: what it knows to ask for is a name that leads here, and it
/// may read what comes back. Elsewhere there is no telling, and where there are users it does not know them.
bool is_rebound(const Request& request, const Policy& policy, const OwnNames& names) {
  return request.local && !request.remote.empty() && !request.encrypted && policy.users.empty() &&
         !names.has(request.header("Host").value_or(""));
}

}  // namespace

Response error_response(int status) {
  Response response;
  response.status = status;
  response.body = std::string(reason_phrase(status)) + '\n';
  return response;
}

Verdict Site::judge(Request& request, const Policy& policy, const std::string& regular) {
  if (policy.limiter && !policy.limiter->take(RateLimiter::Clock::now(), regular)) {
    return {.response = error_response(429)};
  }
  if (is_rebound(request, policy, names_)) {
    Response response = error_response(421);
    response.body +=
        "Over loopback tacho answers to localhost, to addresses and to this machine's name. A proxy sends "
        "one of them as Host, or logs in as a user of --web.config.file.\n";
    return {.response = std::move(response)};
  }
  return judge(request, policy, auth_.look(policy.users, request.header("Authorization")));
}

Verdict Site::check_password(Request& request, const Policy& policy) {
  return judge(request, policy, auth_.check(policy.users, request.header("Authorization")));
}

Verdict Site::judge(Request& request, const Policy& policy, Login login) const {
  if (login == Login::unknown) {
    return {};
  }
  if (login == Login::granted) {
    request.authenticated = request.authenticated || !policy.users.empty();
    return route(request);
  }
  Response response = error_response(401);
  response.headers.emplace_back("WWW-Authenticate", R"(Basic realm="tacho", charset="UTF-8")");
  return {.response = std::move(response)};
}

Verdict Site::route(const Request& request) const {
  const auto found = std::ranges::find(routes_, request.path, &Route::path);
  if (found == routes_.end()) {
    return {.response = error_response(404)};
  }
  if (!allows(*found, request.method)) {
    Response response = error_response(405);
    response.headers.emplace_back("Allow", allowed(*found));
    return {.response = std::move(response)};
  }
  if (found->immediate) {
    return {.response = call(*found, request)};
  }
  return {.route = &*found};
}

Response Site::call(const Route& route, const Request& request) {
  try {
    return route.handler(request);
  } catch (const std::exception& error) {
    spdlog::error("{} {} failed: {}", request.method, route.path, error.what());
  } catch (...) {
    spdlog::error("{} {} failed", request.method, route.path);
  }
  return error_response(500);
}

}  // namespace tacho::web
