#include "top/why.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string_view>
#include <utility>

#include "base/quantities.h"
#include "base/utf8.h"
#include "top/ask.h"
#include "top/parts.h"
#include "top/table.h"
#include "top/top.h"

namespace tacho::top {
namespace {

using nlohmann::json;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kBefore{
    {{"five_minutes", "5 MIN BEFORE"}, {"hour", "HOUR BEFORE"}}};

/// Null is what is not known.
double number_of(const json& value) {
  return value.is_null() ? kUnknown : value.get<double>();
}

void add_means(WhyTarget& target, std::string title, const json& period, double rate) {
  if (period.at("requests").get<double>() == 0) {
    return;
  }
  WhyTarget::Means means{.title = std::move(title), .seconds = number_of(period.at("mean")), .parts = {}, .rate = rate};
  for (const std::string& part : target.parts) {
    const auto found = period.at("parts").find(part);
    means.parts.push_back(found == period.at("parts").end() ? 0 : number_of(*found));
  }
  target.means.push_back(std::move(means));
}

WhyTarget parse_target(const json& object) {
  WhyTarget target;
  target.id = object.at("id").get<std::string>();
  target.sentence = printable(object.at("sentence").get<std::string>());
  target.next = printable(object.at("next").get<std::string>());
  for (const json& each : object.at("evidence")) {
    target.evidence.push_back(fmt::format("{}: {}", printable(each.at("shows").get<std::string>()),
                                          printable(each.at("query").get<std::string>())));
  }
  const json& now = object.at("now");
  const json& slow = object.at("slow");
  for (const Part& part : kParts) {
    const bool occurs = std::ranges::any_of(std::array{"now", "five_minutes", "hour"}, [&](const char* name) {
      return !object.at(name).is_null() && object.at(name).at("parts").contains(part.name);
    });
    if (occurs || slow.at("parts").contains(part.name)) {
      target.parts.emplace_back(part.name);
    }
  }
  add_means(target, "NOW", now, number_of(now.at("rate")));
  const double threshold = number_of(slow.at("threshold"));
  add_means(target, threshold > 0 ? "SLOWER THAN " + format_time(threshold) : "SLOW ONES", slow, kUnknown);
  for (const auto& [name, title] : kBefore) {
    if (const json& before = object.at(name); !before.is_null()) {
      add_means(target, std::string(title), before, number_of(before.at("rate")));
    }
  }
  return target;
}

}  // namespace

Result<std::vector<WhyTarget>> parse_why(const std::string& body) {
  try {
    std::vector<WhyTarget> targets;
    const json document = json::parse(body);
    for (const json& target : document.at("targets")) {
      targets.push_back(parse_target(target));
    }
    return targets;
  } catch (const json::exception&) {
    return not_a_tacho();
  }
}

std::vector<std::string> why_lines(const WhyTarget& target) {
  std::vector<std::string> lines{target.sentence, ""};
  std::vector<std::vector<std::string>> table{{"MEAN OF A REQUEST"}};
  for (const WhyTarget::Means& means : target.means) {
    table.front().insert(table.front().end(), {means.title, ""});
  }
  for (std::size_t part = 0; part < target.parts.size(); ++part) {
    std::vector<std::string> cells{target.parts[part]};
    for (const WhyTarget::Means& means : target.means) {
      cells.push_back(format_time(means.parts[part]));
      cells.push_back(format_share(means.parts[part] / means.seconds));
    }
    table.push_back(std::move(cells));
  }
  std::vector<std::string> sums{"in all"};
  std::vector<std::string> rates{"requests/s"};
  for (const WhyTarget::Means& means : target.means) {
    sums.insert(sums.end(), {format_time(means.seconds), ""});
    rates.insert(rates.end(), {std::isnan(means.rate) ? "" : format_rate(means.rate), ""});
  }
  table.insert(table.end(), {std::move(sums), std::move(rates)});
  if (!target.means.empty()) {
    std::ranges::move(aligned(table, 0), std::back_inserter(lines));
    lines.emplace_back();
  }
  if (!target.next.empty()) {
    lines.push_back("look at: " + target.next);
  }
  for (const std::string& each : target.evidence) {
    lines.push_back("PromQL, " + each);
  }
  return lines;
}

Result<void> show_why(const TopOptions& options, std::ostream& out) {
  const auto about = ask_about(options, "why", scrape::WhyView::kMostTargets);
  if (!about) {
    return std::unexpected(about.error());
  }
  if (options.json) {
    return write_json(about->answer, about->url, out);
  }
  const auto targets = parse_why(about->answer);
  if (!targets) {
    return std::unexpected(targets.error().within(about->url));
  }
  if (targets->empty()) {
    return fail(
        "it is not known what requests wait for: tacho needs `probes: {anatomy: {enabled: true}}`, the probe sched, "
        "and "
        "requests for as long as `window` says");
  }
  for (const Row& row : about->targets.rows) {
    const auto why = std::ranges::find(*targets, row.id, &WhyTarget::id);
    if (why == targets->end()) {
      continue;
    }
    out << row.name << '\n';
    for (const std::string& line : why_lines(*why)) {
      out << (line.empty() ? "" : "  ") << line << '\n';
    }
    out << '\n';
  }
  tell_of_more(about->targets, out);
  return finish(out);
}

}  // namespace tacho::top
