#include "top/slow.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string_view>
#include <utility>

#include "base/quantities.h"
#include "base/utf8.h"
#include "top/ask.h"
#include "top/frame.h"
#include "top/parts.h"
#include "top/table.h"
#include "top/top.h"

namespace tacho::top {
namespace {

using nlohmann::json;

constexpr std::size_t kBar = 24;
constexpr std::string_view kNoMark = "?";

SlowRow parse_request(const json& object) {
  SlowRow row;
  row.age = object.at("age").get<double>();
  row.duration = object.at("duration").get<double>();
  row.mode = printable(object.at("mode").get<std::string>());
  row.thread = printable(object.at("thread_name").get<std::string>()) + " " +
               std::to_string(object.at("thread").get<std::uint64_t>());
  row.client = printable(object.at("client").get<std::string>());
  row.bytes =
      fmt::format("{} → {}", object.at("bytes").get<std::uint64_t>(), object.at("reply_bytes").get<std::uint64_t>());
  for (const auto& [name, mark] : kParts) {
    if (const auto part = object.at("parts").find(name); part != object.at("parts").end()) {
      row.parts.push_back({std::string(name), part->get<double>()});
    }
  }
  if (const auto calls = object.find("calls"); calls != object.end()) {
    const auto count = calls->at("count").get<std::uint64_t>();
    row.calls = fmt::format("{} in {}, longest {} to {}", count, format_time(calls->at("seconds").get<double>()),
                            format_time(calls->at("longest").get<double>()),
                            printable(calls->at("longest_peer").get<std::string>()));
  }
  return row;
}

/// "sleep 93 %".
std::string most(const SlowRow& row) {
  const auto longest = std::ranges::max_element(row.parts, {}, &SlowRow::Part::seconds);
  return longest == row.parts.end() ? std::string()
                                    : longest->name + " " + format_share(longest->seconds / row.duration);
}

}  // namespace

Result<std::vector<SlowTarget>> parse_slowest(const std::string& body) {
  try {
    std::vector<SlowTarget> targets;
    const json document = json::parse(body);
    for (const json& target : document.at("targets")) {
      SlowTarget slow{.id = target.at("id").get<std::string>(), .requests = {}};
      for (const json& request : target.at("requests")) {
        slow.requests.push_back(parse_request(request));
      }
      targets.push_back(std::move(slow));
    }
    return targets;
  } catch (const json::exception&) {
    return not_a_tacho();
  }
}

std::string bar(const SlowRow& row, std::size_t width) {
  std::string text;
  double before = 0;
  for (const SlowRow::Part& part : row.parts) {
    const auto* const mark = std::ranges::find(kParts, part.name, &Part::name);
    before += part.seconds / row.duration;
    const auto end = static_cast<std::size_t>(std::lround(std::clamp(before, 0.0, 1.0) * static_cast<double>(width)));
    text.resize(std::max(text.size(), end), mark == kParts.end() ? kNoMark.front() : mark->mark);
  }
  text.resize(width, '.');
  return text;
}

std::vector<std::string> slow_lines(const std::vector<SlowRow>& requests) {
  std::vector<std::vector<std::string>> table{
      {"AGE", "DURATION", "WHAT IT WAITED FOR", "MOSTLY", "SERVED BY", "THREAD", "CLIENT", "BYTES", "CALLS"}};
  for (const SlowRow& row : requests) {
    table.push_back({fmt::format("{:.0f} s", row.age), format_time(row.duration), bar(row, kBar), most(row), row.mode,
                     row.thread, row.client, row.bytes, row.calls});
  }
  return aligned(table, 2);
}

std::string slow_legend() {
  std::string text;
  for (const auto& [name, mark] : kParts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : "  ", mark, name);
  }
  return text;
}

Result<void> show_slowest(const TopOptions& options, std::ostream& out) {
  const auto about = ask_about(options, "slow", scrape::SlowView::kMostTargets);
  if (!about) {
    return std::unexpected(about.error());
  }
  if (options.json) {
    return write_json(about->answer, about->url, out);
  }
  const auto targets = parse_slowest(about->answer);
  if (!targets) {
    return std::unexpected(targets.error().within(about->url));
  }
  bool any = false;
  for (const Row& row : about->targets.rows) {
    const auto slow = std::ranges::find(*targets, row.id, &SlowTarget::id);
    if (slow == targets->end() || slow->requests.empty()) {
      continue;
    }
    out << row.name << '\n';
    for (const std::string& line : slow_lines(slow->requests)) {
      out << "  " << line << '\n';
    }
    out << '\n';
    any = true;
  }
  if (!any) {
    return fail("no requests were recorded: does the configuration say `probes: {anatomy: {enabled: true}}`?");
  }
  out << slow_legend() << '\n';
  tell_of_more(about->targets, out);
  return finish(out);
}

}  // namespace tacho::top
