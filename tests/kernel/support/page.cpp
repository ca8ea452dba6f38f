#include "kernel/support/page.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>
#include <string_view>

#include "probes/registry.h"

namespace tacho::kernel_test {
namespace {

/// `name="value",…` as a map.
Labels parse_labels(const std::string& text) {
  Labels labels;
  for (std::size_t at = 0; at < text.size();) {
    const auto equals = text.find("=\"", at);
    const auto end = text.find('"', equals + 2);
    labels[text.substr(at, equals - at)] = text.substr(equals + 2, end - equals - 2);
    at = end + 2;
  }
  return labels;
}

bool has(const Labels& all, const Labels& wanted) {
  return std::ranges::all_of(wanted, [&all](const auto& label) {
    const auto found = all.find(label.first);
    return found != all.end() && found->second == label.second;
  });
}

std::string show(const std::string& name, const Labels& labels) {
  std::string text = name + "{";
  for (const auto& [label, value] : labels) {
    text += label;
    text += "=\"";
    text += value;
    text += "\",";
  }
  return text + "}";
}

/// The family of a sample; nullptr if it is none of a target's.
const metrics::Family* family_of(std::string_view sample) {
  for (const probes::Entry& probe : probes::registry()) {
    for (const metrics::Family& family : probe.families()) {
      const bool part = family.type == metrics::Type::histogram && sample.starts_with(family.name) &&
                        (sample.ends_with("_sum") || sample.ends_with("_count"));
      if (sample.size() == family.name.size() + (part ? sample.size() - sample.rfind('_') : 0) &&
          sample.starts_with(family.name)) {
        return &family;
      }
    }
  }
  return nullptr;
}

}  // namespace

bool Page::has_not_appeared(const std::string& name, const Labels& labels) const {
  const metrics::Family* family = family_of(name);
  if (family == nullptr || family->appears == metrics::Appears::at_once) {
    return false;
  }
  Labels of_target = labels;
  if (const auto own = of_target.find(std::string(family->label)); own != of_target.end()) {
    if (!family->dynamic() && std::ranges::find(family->values, own->second) == family->values.end()) {
      return false;
    }
    of_target.erase(own);
  }
  return count("tacho_requests_total", of_target) == 1 || count("tacho_thread_state_seconds_total", of_target) > 0 ||
         count("tacho_target_info", of_target) == 1;
}

Page::Page(const std::string& exposition) {
  std::istringstream lines(exposition);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.starts_with("# TYPE ")) {
      families_.push_back(line.substr(7, line.find(' ', 7) - 7));
    }
    if (line.empty() || line.starts_with('#')) {
      continue;
    }
    const auto space = line.rfind(' ');
    const auto brace = line.find('{');
    Sample sample{{}, std::stod(line.substr(space + 1))};
    if (brace != std::string::npos) {
      sample.labels = parse_labels(line.substr(brace + 1, space - brace - 2));
    }
    samples_.emplace(line.substr(0, std::min(brace, space)), std::move(sample));
  }
}

double Page::value(const std::string& name, const Labels& labels) const {
  const auto [first, last] = samples_.equal_range(name);
  std::vector<double> found;
  for (auto at = first; at != last; ++at) {
    if (has(at->second.labels, labels)) {
      found.push_back(at->second.value);
    }
  }
  if (found.empty() && has_not_appeared(name, labels)) {
    return 0;
  }
  INFO(show(name, labels) << " should be one sample");
  REQUIRE(found.size() == 1);
  return found[0];
}

double Page::sum(const std::string& name, const Labels& labels) const {
  const auto [first, last] = samples_.equal_range(name);
  double sum = 0;
  for (auto at = first; at != last; ++at) {
    sum += has(at->second.labels, labels) ? at->second.value : 0;
  }
  return sum;
}

std::size_t Page::count(const std::string& name, const Labels& labels) const {
  const auto [first, last] = samples_.equal_range(name);
  return static_cast<std::size_t>(
      std::count_if(first, last, [&labels](const auto& sample) { return has(sample.second.labels, labels); }));
}

std::vector<std::pair<double, double>> Page::buckets(const std::string& name, const Labels& labels) const {
  std::map<double, double> cumulative;
  const auto [first, last] = samples_.equal_range(name + "_bucket");
  for (auto at = first; at != last; ++at) {
    if (has(at->second.labels, labels)) {
      cumulative[std::stod(at->second.labels.at("le"))] = at->second.value;
    }
  }
  std::vector<std::pair<double, double>> counts;
  double before = 0;
  for (const auto& [bound, total] : cumulative) {
    if (total > before) {
      counts.emplace_back(bound, total - before);
    }
    before = total;
  }
  return counts;
}

}  // namespace tacho::kernel_test
