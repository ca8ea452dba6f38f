#include "page/routes.h"

#include <spdlog/spdlog.h>

#include <cstdint>

#include "page/assets.h"
#include "page/json.h"
#include "page/query.h"

namespace tacho::page {
namespace {

/// Nothing from elsewhere, no inline scripts or styles, no frames: a name that became markup could still do nothing.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

web::Response json_response(std::string body) {
  web::Response response;
  response.content_type = "application/json";
  response.headers.emplace_back("Cache-Control", "no-store");
  response.body = std::move(body);
  return response;
}

web::Response refusal(const Error& error, int status = 400) {
  web::Response response;
  response.status = status;
  response.body = error.message + "\n";
  return response;
}

std::string content_type(std::string_view name) {
  if (name.ends_with(".js")) {
    return "text/javascript; charset=utf-8";
  }
  if (name.ends_with(".css")) {
    return "text/css; charset=utf-8";
  }
  return name.ends_with(".svg") ? "image/svg+xml" : "text/html; charset=utf-8";
}

/// A file; the browser asks again each time and is told that it has it already.
web::Response file_response(const web::Request& request, std::string_view name, std::string_view body,
                            const std::string& tag) {
  web::Response response;
  response.headers = {{"Content-Security-Policy", std::string(kPolicy)},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-cache"},
                      {"ETag", tag}};
  if (request.header("If-None-Match") == tag) {
    response.status = 304;
    return response;
  }
  response.content_type = content_type(name);
  response.body = body;
  return response;
}

web::Response table(scrape::Scraper& scraper, const std::function<std::vector<std::string>()>& absent,
                    const web::Request& request) {
  const auto query = table_query(request.query);
  return query ? json_response(table_json(scraper.table(*query), absent())) : refusal(query.error());
}

web::Response history(scrape::Scraper& scraper, const web::Request& request) {
  auto parameters = parse_query(request.query);
  const auto since = number_of(parameters, "since", 0, UINT64_MAX);
  return since ? json_response(history_json(scraper.history(split_ids(parameters["ids"]), *since)))
               : refusal(since.error());
}

web::Response detail(scrape::Scraper& scraper, const web::Request& request) {
  auto parameters = parse_query(request.query);
  const auto since = number_of(parameters, "since", 0, UINT64_MAX);
  if (!since) {
    return refusal(since.error());
  }
  const auto view = scraper.detail(parameters["id"], *since);
  return view ? json_response(detail_json(*view)) : refusal({"no target has this id (now)"}, 404);
}

}  // namespace

std::vector<web::Route> routes(scrape::Scraper& scraper, const std::string& telemetry_path,
                               std::function<std::vector<std::string>()> absent) {
  std::vector<web::Route> list;
  const auto add = [&list](std::string path, web::Handler handler) {
    list.push_back({.path = std::move(path), .methods = {"GET"}, .handler = std::move(handler)});
  };
  for (const Asset& asset : assets()) {
    if (asset.name == "index.html") {
      const std::string tag = fmt::format("\"{}-{:x}\"", asset.tag, std::hash<std::string>{}(telemetry_path));
      add("/", [html = index_html(telemetry_path), tag](const web::Request& request) {
        return file_response(request, "index.html", html, tag);
      });
    } else {
      const std::string tag = fmt::format("\"{}\"", asset.tag);
      add("/assets/" + std::string(asset.name),
          [asset, tag](const web::Request& request) { return file_response(request, asset.name, asset.body, tag); });
    }
  }
  add("/api/v1/targets",
      [&scraper, absent = std::move(absent)](const web::Request& request) { return table(scraper, absent, request); });
  add("/api/v1/history", [&scraper](const web::Request& request) { return history(scraper, request); });
  add("/api/v1/target", [&scraper](const web::Request& request) { return detail(scraper, request); });
  return list;
}

}  // namespace tacho::page
