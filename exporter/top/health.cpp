#include "top/health.h"

#include <chrono>
#include <utility>

#include "top/client.h"

namespace tacho::top {

using namespace std::chrono_literals;

Result<void> ask_health(Url url) {
  const bool tls = url.tls;
  const auto client = Client::open(std::move(url), {.ca_file = {}, .any_certificate = true, .patience = 2s});
  if (!client) {
    return std::unexpected(client.error());
  }
  const auto answer = (*client)->get("/-/healthy");
  const int status = (*client)->refused_with();
  if (answer || status == 401) {
    return {};
  }
  // What the client says names options that this command does not have.
  const int code = answer.error().code;
  const std::string what = status != 0 ? "/-/healthy answers " + std::to_string(status)
                           : code != 0 ? Error::from_errno("cannot connect", code).message
                                       : "no answer of an HTTP server";
  return fail((*client)->url().text() + ": " + what + (tls ? "" : "; if it speaks TLS, give the --web.config.file"));
}

}  // namespace tacho::top
