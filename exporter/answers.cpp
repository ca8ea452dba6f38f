#include "answers.h"

#include <fmt/format.h>

#include <exception>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

#include "page/json.h"
#include "scrape/target_view.h"
#include "scrape/views.h"

namespace tacho {
namespace {

using boundary::Kind;
using boundary::Question;
using boundary::Status;

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::text_metrics:
    case Kind::openmetrics:
    case Kind::protobuf_metrics:
      return "GET /metrics";
    case Kind::targets:
      return "GET /targets";
    case Kind::table:
      return "GET /api/v1/targets";
    case Kind::history:
      return "GET /api/v1/history";
    case Kind::detail:
      return "GET /api/v1/target";
    case Kind::slow:
      return "GET /api/v1/slow";
    case Kind::why:
      return "GET /api/v1/why";
    case Kind::reload:
      return "POST /-/reload";
  }
  std::unreachable();
}

metrics::Format format_of(Kind kind) {
  return kind == Kind::protobuf_metrics ? metrics::Format::protobuf
         : kind == Kind::openmetrics    ? metrics::Format::openmetrics
                                        : metrics::Format::prometheus_text;
}

std::vector<std::string> id_texts(const Question& question) {
  std::vector<std::string> list;
  for (const std::uint64_t id : question.id_list()) {
    list.push_back(boundary::id_text(id));
  }
  return list;
}

}  // namespace

boundary::SealedAnswer Answers::make(const Question& question) {
  if (!boundary::is_valid(question)) {
    problems_.log(LogLevel::error, "question", "the web process asked something that no question is");
    return {};
  }
  const std::string_view name = name_of(question.kind);
  const auto task = liveness_.begin(std::string(name));
  try {
    boundary::SealedAnswer sealed = answer(question);
    if (sealed.text.descriptor()) {
      if (auto done = sealed.text.seal(); !done) {
        problems_.log(LogLevel::error, name, fmt::format("{} failed: {}", name, done.error().message));
        return {};
      }
    }
    return sealed;
  } catch (const std::exception& error) {
    problems_.log(LogLevel::error, name, fmt::format("{} failed: {}", name, error.what()));
  }
  return {};
}

boundary::SealedAnswer Answers::answer(const Question& question) {
  if (question.kind == Kind::reload) {
    return {.status = reload(), .text = {}};
  }
  scrape::Scraper& scraper = app_.scraper();
  auto text = boundary::SealedText::create();
  if (!text) {
    throw std::runtime_error(text.error().message);
  }
  switch (question.kind) {
    case Kind::text_metrics:
    case Kind::openmetrics:
    case Kind::protobuf_metrics: {
      for (const std::string& reader : id_texts(question)) {
        scraper.read_by(reader);
      }
      scrape::PageText page(*text);
      scraper.write_page(page, format_of(question.kind));
      break;
    }
    case Kind::targets:
      text->append(scrape::targets_json(scraper.view(scrape::summaries), app_.absent(), scraper.processes()));
      break;
    case Kind::table:
      text->append(page::table_json(scraper.view(scrape::table_view, question.table_query()), app_.absent()));
      break;
    case Kind::history:
      text->append(page::history_json(scraper.view(scrape::history_view, id_texts(question), question.since)));
      break;
    case Kind::detail: {
      const auto ids = id_texts(question);
      const auto view = ids.empty() ? std::nullopt : scraper.view(scrape::detail_view, ids.front(), question.since);
      if (!view) {
        return {.status = Status::missing, .text = {}};
      }
      text->append(page::detail_json(*view));
      break;
    }
    case Kind::slow:
      text->append(page::slow_json(scraper.view(scrape::slow_view, id_texts(question))));
      break;
    case Kind::why:
      text->append(page::why_json(scraper.view(scrape::why_view, id_texts(question))));
      break;
    case Kind::reload:
      std::unreachable();
  }
  return {.status = Status::done, .text = std::move(*text)};
}

Status Answers::reload() {
  switch (reloads_.ask()) {
    case ReloadQueue::Outcome::done:
      return Status::done;
    case ReloadQueue::Outcome::failed:
      return Status::failed;
    case ReloadQueue::Outcome::busy:
      return Status::busy;
    case ReloadQueue::Outcome::timeout:
      return Status::timeout;
  }
  std::unreachable();
}

}  // namespace tacho
