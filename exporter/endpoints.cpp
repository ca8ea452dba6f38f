#include "endpoints.h"

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <utility>

#include "base/log.h"
#include "boundary/readers.h"
#include "metrics/exposition.h"
#include "page/routes.h"

namespace tacho {
namespace {

web::Response plain(std::string text, int status = 200) {
  web::Response response;
  response.status = status;
  response.body = std::move(text);
  return response;
}

web::Response reload_response(boundary::Collector& collector) {
  const auto answer = collector.ask({.kind = boundary::Kind::reload});
  switch (answer ? answer->status : boundary::Status::timeout) {
    case boundary::Status::done:
      return plain("reloaded\n");
    case boundary::Status::busy: {
      web::Response response = plain("somebody else reloads; ask again\n", 429);
      response.headers.emplace_back("Retry-After", "1");
      return response;
    }
    case boundary::Status::timeout:
      return plain("not reloaded in time: the log says what tacho is at\n", 503);
    default:
      return plain("not reloaded: the configuration is bad, the one before stays; the log says what is wrong\n", 500);
  }
}

/// Who reads the metrics: told with the question for the next page, which is never begun before they asked. A page that
/// took longer than who scrapes allows is a warning in the log.
class MetricsReaders {
 public:
  using Clock = std::chrono::steady_clock;

  void came(const web::Request& request) {
    const std::string reader = request.remote + " " + request.header("User-Agent").value_or("");
    readers_.scraped(reader, Clock::now());
    const std::lock_guard lock(mutex_);
    if (waiting_.size() < boundary::kMaxIds) {
      waiting_.insert(std::hash<std::string>{}(reader));
    }
  }
  /// @return since when the first of them waits
  Clock::time_point move_to(boundary::Question& question) {
    const std::lock_guard lock(mutex_);
    for (const std::uint64_t reader : std::exchange(waiting_, {})) {
      question.ids.at(question.id_count++) = reader;
    }
    return readers_.page_begun(Clock::now());
  }
  void page_made(Clock::time_point asked) {
    if (const auto line = readers_.complaint(Clock::now() - asked)) {
      complaints_.log(LogLevel::warn, "scrape", *line);
    }
  }

 private:
  boundary::Readers readers_;
  RateLimited complaints_{std::chrono::minutes(5)};
  std::mutex mutex_;
  std::set<std::uint64_t> waiting_;
};

boundary::Kind kind_of(metrics::Format format) {
  switch (format) {
    case metrics::Format::prometheus_text:
      return boundary::Kind::text_metrics;
    case metrics::Format::openmetrics:
      return boundary::Kind::openmetrics;
    case metrics::Format::protobuf:
      return boundary::Kind::protobuf_metrics;
  }
  std::unreachable();
}

web::SharedPage metrics_page(boundary::Collector& collector) {
  const auto readers = std::make_shared<MetricsReaders>();
  // Asked once a request, also where many get the same page.
  const auto content_type = [readers](const web::Request& request) {
    readers->came(request);
    return std::string(metrics::content_type(metrics::negotiate(request.header("Accept").value_or(""))));
  };
  const auto make = [&collector, readers](const std::string& type) {
    boundary::Question question{.kind = kind_of(metrics::format_of(type))};
    const auto since = readers->move_to(question);
    const auto answer = collector.ask(question);
    if (!answer) {
      throw std::runtime_error(answer.error().message);
    }
    if (answer->status != boundary::Status::done) {
      throw std::runtime_error("the page could not be made");
    }
    readers->page_made(since);
    return web::Pieces{web::Piece(answer->text.owner(), answer->text.view())};
  };
  return {.content_type = content_type, .make = make};
}

}  // namespace

std::optional<std::string> why_not_reload(const web::Request& request, bool lifecycle) {
  const std::string site = request.header("Sec-Fetch-Site").value_or("none");
  if (request.header("Origin") || site != "none") {
    return "no page of a browser may reload";
  }
  const bool forwarded = request.header("Forwarded") || request.header("X-Forwarded-For") ||
                         request.header("X-Real-IP") || request.header("Via");
  if (lifecycle || request.authenticated || (request.local && !forwarded)) {
    return std::nullopt;
  }
  return "reload from this machine, by SIGHUP, or as a user of --web.config.file; --web.enable-lifecycle lets "
         "everybody in";
}

std::vector<web::Route> endpoints(const EndpointContext& context) {
  boundary::Collector* const collector = context.collector;
  std::vector<web::Route> list = page::routes(*collector, context.telemetry_path);
  list.push_back({.path = context.telemetry_path, .methods = {"GET"}, .page = metrics_page(*collector)});
  list.push_back({.path = "/targets", .methods = {"GET"}, .handler = [collector](const web::Request&) {
                    return page::answered(*collector, {.kind = boundary::Kind::targets});
                  }});
  list.push_back({.path = "/-/healthy",
                  .methods = {"GET"},
                  .handler =
                      [stuck = context.stuck](const web::Request&) {
                        const auto why = stuck();
                        return why ? plain("tacho is not well: " + *why + "\n", 503) : plain("tacho is healthy.\n");
                      },
                  .immediate = true});
  // Served only once everything is attached and the first look at the machine is done.
  list.push_back({.path = "/-/ready",
                  .methods = {"GET"},
                  .handler =
                      [stuck = context.stuck, blind = context.blindness](const web::Request&) {
                        const auto why = stuck();
                        return why             ? plain("tacho is not well: " + *why + "\n", 503)
                               : blind.empty() ? plain("tacho is ready.\n")
                                               : plain("tacho is not ready: " + blind + "\n", 503);
                      },
                  .immediate = true});
  list.push_back({.path = "/-/reload",
                  .methods = {"POST", "PUT"},
                  .handler = [collector, lifecycle = context.lifecycle](const web::Request& request) {
                    const auto why_not = why_not_reload(request, lifecycle);
                    return why_not ? plain(*why_not + "\n", 403) : reload_response(*collector);
                  }});
  return list;
}

}  // namespace tacho
