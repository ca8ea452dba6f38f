#include "kernel/support/page.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <optional>
#include <string_view>

#include "probes/registry.h"

namespace tacho::kernel_test {
namespace {

/// The value of a label among `name="value",…`; nullopt if it is not there.
std::optional<std::string_view> label_of(std::string_view labels, std::string_view name) {
  while (!labels.empty()) {
    const auto equals = labels.find("=\"");
    const auto end = labels.find('"', equals + 2);
    if (labels.substr(0, equals) == name) {
      return labels.substr(equals + 2, end - equals - 2);
    }
    labels.remove_prefix(std::min(labels.size(), end + 2));
  }
  return std::nullopt;
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

std::vector<std::string> Page::families() const {
  constexpr std::string_view kType = "\n# TYPE ";
  std::vector<std::string> names;
  for (auto at = text_.find(kType); at != std::string::npos; at = text_.find(kType, at)) {
    at += kType.size();
    names.push_back(text_.substr(at, text_.find(' ', at) - at));
  }
  return names;
}

std::vector<Page::Sample> Page::samples(const std::string& name, const Labels& labels) const {
  const std::string begin = "\n" + name;
  std::vector<Sample> found;
  for (auto at = text_.find(begin); at != std::string::npos; at = text_.find(begin, at)) {
    at += begin.size();
    const auto line = std::string_view(text_).substr(at, text_.find('\n', at) - at);
    const auto space = line.rfind(' ');
    Sample sample;
    if (line.starts_with('{')) {
      sample.labels = line.substr(1, space - 2);
    } else if (!line.starts_with(' ')) {
      continue;
    }
    if (std::ranges::all_of(labels,
                            [&](const auto& label) { return label_of(sample.labels, label.first) == label.second; })) {
      sample.value = std::stod(std::string(line.substr(space + 1)));
      found.push_back(sample);
    }
  }
  return found;
}

double Page::value(const std::string& name, const Labels& labels) const {
  const auto found = samples(name, labels);
  if (found.empty() && has_not_appeared(name, labels)) {
    return 0;
  }
  INFO(show(name, labels) << " should be one sample");
  REQUIRE(found.size() == 1);
  return found.front().value;
}

double Page::sum(const std::string& name, const Labels& labels) const {
  double sum = 0;
  for (const Sample& sample : samples(name, labels)) {
    sum += sample.value;
  }
  return sum;
}

std::size_t Page::count(const std::string& name, const Labels& labels) const {
  return samples(name, labels).size();
}

std::vector<std::pair<double, double>> Page::buckets(const std::string& name, const Labels& labels) const {
  std::map<double, double> cumulative;
  for (const Sample& sample : samples(name + "_bucket", labels)) {
    cumulative[std::stod(std::string(label_of(sample.labels, "le").value()))] = sample.value;
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
