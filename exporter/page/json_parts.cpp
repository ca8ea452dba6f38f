#include "page/json_parts.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "base/version.h"
#include "probes/slow_requests.h"

namespace tacho::page {

using nlohmann::json;

json number(double value) {
  if (!std::isfinite(value)) {
    return nullptr;
  }
  std::array<char, 32> text{};
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 4);
  double rounded = 0;
  std::from_chars(text.data(), written.ptr, rounded);
  const auto whole = static_cast<std::int64_t>(rounded);
  return static_cast<double>(whole) == rounded ? json(whole) : json(rounded);
}

json parts_json(const std::array<double, TACHO_PARTS>& seconds) {
  json parts = json::object();
  for (std::size_t part = 0; part < seconds.size(); ++part) {
    if (seconds.at(part) > 0) {
      parts[probes::kPartNames.at(part)] = number(seconds.at(part));
    }
  }
  return parts;
}

json time_json(const scrape::ViewTime& time) {
  return {{"instance", time.instance}, {"tick", time.tick}, {"version", version()}};
}

std::string text(const json& document) {
  return document.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace tacho::page
