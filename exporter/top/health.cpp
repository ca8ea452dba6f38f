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
  const std::string what =
      status == 0 ? answer.error().message : (*client)->url().text() + ": /-/healthy answers " + std::to_string(status);
  return fail(what + (tls ? "" : "; if it speaks TLS, give the --web.config.file"));
}

}  // namespace tacho::top
