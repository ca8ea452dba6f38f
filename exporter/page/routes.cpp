#include "page/routes.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <stdexcept>

#include "page/assets.h"
#include "page/query.h"

namespace tacho::page {
namespace {

/// Nothing from elsewhere, no inline scripts or styles, no frames: a name that became markup could still do nothing.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

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

web::Response document(boundary::Collector& collector, const boundary::Question& question) {
  web::Response response = answered(collector, question);
  response.headers.emplace_back("Cache-Control", "no-store");
  return response;
}

web::Response table(boundary::Collector& collector, const web::Request& request) {
  const auto query = table_query(request.query);
  if (!query) {
    return refusal(query.error());
  }
  const auto question = boundary::table_question(*query);
  return question ? document(collector, *question) : refusal({"filter: too long"});
}

/// Of targets by their ids; an id that is none names no target.
Result<boundary::Question> question_for_ids(boundary::Kind kind, const web::Request& request, const std::string& key) {
  auto parameters = parse_query(request.query);
  const auto since = number_of(parameters, "since", 0, UINT64_MAX);
  if (!since) {
    return std::unexpected(since.error());
  }
  boundary::Question question{.since = *since, .kind = kind};
  for (const std::string& text : split_ids(parameters[key])) {
    const auto id = boundary::parse_id(text);
    if (id && question.id_count < question.ids.size()) {
      question.ids.at(question.id_count++) = *id;
    }
  }
  return question;
}

/// What is asked by the ids of targets, and the parameter that has them.
struct ByIds {
  std::string_view path;
  boundary::Kind kind;
  std::string_view key;
};
constexpr std::array kByIds{
    ByIds{"/api/v1/history", boundary::Kind::history, "ids"}, ByIds{"/api/v1/slow", boundary::Kind::slow, "ids"},
    ByIds{"/api/v1/why", boundary::Kind::why, "ids"}, ByIds{"/api/v1/target", boundary::Kind::detail, "id"}};

web::Response of_ids(boundary::Collector& collector, const ByIds& what, const web::Request& request) {
  const auto question = question_for_ids(what.kind, request, std::string(what.key));
  return question ? document(collector, *question) : refusal(question.error());
}

}  // namespace

web::Response answered(boundary::Collector& collector, const boundary::Question& question) {
  const auto answer = collector.ask(question);
  if (!answer) {
    throw std::runtime_error(answer.error().message);
  }
  web::Response response;
  switch (answer->status) {
    case boundary::Status::done:
      response.content_type = "application/json";
      response.body = answer->text.view();
      return response;
    case boundary::Status::missing:
      return refusal({"no target has this id (now)"}, 404);
    default:
      throw std::runtime_error("the collector could not answer");
  }
}

std::vector<web::Route> routes(boundary::Collector& collector, const std::string& telemetry_path) {
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
  add("/api/v1/targets", [&collector](const web::Request& request) { return table(collector, request); });
  for (const ByIds& what : kByIds) {
    add(std::string(what.path),
        [&collector, &what](const web::Request& request) { return of_ids(collector, what, request); });
  }
  return list;
}

}  // namespace tacho::page
