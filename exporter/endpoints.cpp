#include "endpoints.h"

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

}  // namespace

std::vector<web::Route> endpoints(const EndpointContext& context) {
  App* app = context.app;
  const std::string metrics_path = context.telemetry_path;
  std::vector<web::Route> list = page::routes(app->scraper(), metrics_path, [app] { return app->absent(); });
  const std::vector<web::Route> others = {
      {metrics_path,
       {"GET"},
       [app](const web::Request& request) {
         const metrics::Format format = metrics::negotiate(request.header("Accept").value_or(""));
         return typed(std::string(metrics::content_type(format)), app->scraper().scrape(format));
       }},
      {"/targets",
       {"GET"},
       [app](const web::Request&) {
         return typed("application/json", scrape::targets_json(app->scraper().summaries(), app->absent()));
       }},
      {"/-/healthy", {"GET"}, [](const web::Request&) { return plain("tacho is healthy.\n"); }},
      // Served only once everything is attached and the first look at the machine is done.
      {"/-/ready", {"GET"}, [](const web::Request&) { return plain("tacho is ready.\n"); }},
      {"/-/reload",
       {"POST", "PUT"},
       [reload = context.reload](const web::Request&) {
         const auto done = reload();
         return done ? plain("reloaded\n") : plain(done.error().message + "\n", 500);
       }},
  };
  list.insert(list.end(), others.begin(), others.end());
  return list;
}

}  // namespace tacho
