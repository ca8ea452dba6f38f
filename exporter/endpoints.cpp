#include "endpoints.h"

#include <utility>

#include "metrics/exposition.h"
#include "page/routes.h"
#include "scrape/target_view.h"

namespace tacho {
namespace {

web::Response plain(std::string text, int status = 200) {
  web::Response response;
  response.status = status;
  response.body = std::move(text);
  return response;
}

web::Response typed(std::string content_type, std::string body) {
  web::Response response;
  response.content_type = std::move(content_type);
  response.body = std::move(body);
  return response;
}

web::Response reload_response(ReloadQueue::Outcome outcome) {
  switch (outcome) {
    case ReloadQueue::Outcome::done:
      return plain("reloaded\n");
    case ReloadQueue::Outcome::failed:
      return plain("not reloaded: the configuration is bad, the one before stays; the log says what is wrong\n", 500);
    case ReloadQueue::Outcome::busy: {
      web::Response response = plain("somebody else reloads; ask again\n", 429);
      response.headers.emplace_back("Retry-After", "1");
      return response;
    }
    case ReloadQueue::Outcome::timeout:
      return plain("not reloaded in time: the log says what tacho is at\n", 503);
  }
  std::unreachable();
}

}  // namespace

std::optional<std::string> why_not_reload(const web::Request& request, bool lifecycle) {
  const std::string site = request.header("Sec-Fetch-Site").value_or("none");
  if (request.header("Origin") || site != "none") {
    return "no page of a browser may reload";
  }
  const bool forwarded =
      request.header("Forwarded") || request.header("X-Forwarded-For") || request.header("X-Real-IP");
  if (lifecycle || request.authenticated || (request.local && !forwarded)) {
    return std::nullopt;
  }
  return "reload from this machine, by SIGHUP, or as a user of --web.config.file; --web.enable-lifecycle lets "
         "everybody in";
}

std::vector<web::Route> endpoints(const EndpointContext& context) {
  App* app = context.app;
  const std::string metrics_path = context.telemetry_path;
  std::vector<web::Route> list = page::routes(app->scraper(), metrics_path, [app] { return app->absent(); });
  // Asked once a request, also where many get the same page.
  const auto content_type = [app](const web::Request& request) {
    app->scraper().read_by(request.remote + " " + request.header("User-Agent").value_or(""));
    return std::string(metrics::content_type(metrics::negotiate(request.header("Accept").value_or(""))));
  };
  const auto page = [app](const std::string& type) { return app->scraper().page(metrics::format_of(type)); };
  const auto stuck = [liveness = context.liveness]() -> std::optional<std::string> {
    const auto found = liveness->stuck();
    return found ? std::optional("tacho is not well: " + found->text() + "\n") : std::nullopt;
  };
  list.push_back(
      {.path = metrics_path, .methods = {"GET"}, .page = web::SharedPage{.content_type = content_type, .make = page}});
  list.push_back({.path = "/targets", .methods = {"GET"}, .handler = [app](const web::Request&) {
                    return typed("application/json", scrape::targets_json(app->scraper().summaries(), app->absent()));
                  }});
  list.push_back({.path = "/-/healthy",
                  .methods = {"GET"},
                  .handler =
                      [stuck](const web::Request&) {
                        const auto why = stuck();
                        return why ? plain(*why, 503) : plain("tacho is healthy.\n");
                      },
                  .immediate = true});
  // Served only once everything is attached and the first look at the machine is done.
  list.push_back({.path = "/-/ready",
                  .methods = {"GET"},
                  .handler =
                      [stuck, blind = app->blindness()](const web::Request&) {
                        const auto why = stuck();
                        return why             ? plain(*why, 503)
                               : blind.empty() ? plain("tacho is ready.\n")
                                               : plain("tacho is not ready: " + blind + "\n", 503);
                      },
                  .immediate = true});
  list.push_back({.path = "/-/reload",
                  .methods = {"POST", "PUT"},
                  .handler = [reload = context.reload, lifecycle = context.lifecycle](const web::Request& request) {
                    const auto why_not = why_not_reload(request, lifecycle);
                    return why_not ? plain(*why_not + "\n", 403) : reload_response(reload());
                  }});
  return list;
}

}  // namespace tacho
