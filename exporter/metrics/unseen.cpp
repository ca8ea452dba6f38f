#include "metrics/unseen.h"

#include <algorithm>

namespace tacho::metrics {

Unseen::Unseen(std::span<const Family> families, const std::function<bool(std::string_view)>& lacks) {
  std::size_t value = 0;
  std::size_t fine = 0;
  std::size_t histogram = 0;
  for (std::size_t number = 0; number < families.size(); ++number) {
    const Family& family = families[number];
    const bool all = std::ranges::any_of(family.hooks, lacks);
    if (family.dynamic()) {
      if (all) {
        families_.push_back(number);
      }
      continue;
    }
    const bool is_histogram = family.type == Type::histogram;
    std::size_t& next = !is_histogram ? value : family.fine ? fine : histogram;
    auto& places = !is_histogram ? values_ : family.fine ? fine_ : histograms_;
    for (std::size_t i = 0; i < family.samples(); ++i, ++next) {
      if (all || (i < family.value_hooks.size() && lacks(family.value_hooks[i]))) {
        places.push_back(next);
      }
    }
  }
}

void Unseen::hide(Row& row) const {
  const auto hide_all = [](auto& samples, const std::vector<std::size_t>& places, auto hide_one) {
    for (const std::size_t place : places) {
      if (place < samples.size()) {
        hide_one(samples[place]);
      }
    }
  };
  const auto hide_histogram = [](auto& histogram) { histogram.absent = true; };
  hide_all(row.values, values_, [](Value& value) { value = Value::absent(); });
  hide_all(row.fine, fine_, hide_histogram);
  hide_all(row.histograms, histograms_, hide_histogram);
  std::erase_if(row.dynamic, [this](const DynamicSample& sample) {
    return std::ranges::find(families_, sample.family) != families_.end();
  });
}

}  // namespace tacho::metrics
