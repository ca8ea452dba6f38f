#include "metrics/appearance.h"

#include <algorithm>
#include <cmath>

namespace tacho::metrics {
namespace {

bool had_event(const Value& value) {
  switch (value.kind) {
    case Value::Kind::absent:
      return false;
    case Value::Kind::real:
      return value.real != 0 && !std::isnan(value.real);
    case Value::Kind::count:
    case Value::Kind::nanoseconds:
      break;
  }
  return value.integer != 0;
}

template <std::size_t PerOctave>
bool had_event(const SlotHistogram<PerOctave>& histogram) {
  return histogram.sum_ns != 0;
}

void hide(Value& value) {
  value = Value::absent();
}

template <std::size_t PerOctave>
void hide(SlotHistogram<PerOctave>& histogram) {
  histogram.absent = true;
}

bool had_event(const Family& family, const DynamicSample& sample) {
  return family.type == Type::histogram ? had_event(sample.histogram) : had_event(sample.value);
}

}  // namespace

void Appearance::apply(std::span<const Family> families, Row& row) {
  std::size_t number = 0;
  std::size_t value = 0;
  std::size_t fine = 0;
  std::size_t histogram = 0;
  const auto visit = [&](const Family& family, auto& samples, std::size_t& next) {
    for (std::size_t i = 0; i < family.samples(); ++i, ++number, ++next) {
      if (family.appears == Appears::at_once || next >= samples.size()) {
        continue;
      }
      if (seen_.size() <= number) {
        seen_.resize(number + 1);
      }
      if (had_event(samples[next])) {
        seen_[number] = true;
      } else if (!seen_[number]) {
        hide(samples[next]);
      }
    }
  };
  for (const Family& family : families) {
    if (family.type != Type::histogram) {
      visit(family, row.values, value);
    } else if (family.fine) {
      visit(family, row.fine, fine);
    } else {
      visit(family, row.histograms, histogram);
    }
  }
  // Counters and histograms by peer: what was above 0 stays so, since a peer keeps its place as long as the target.
  std::erase_if(row.dynamic, [families](const DynamicSample& sample) {
    const Family& family = families[sample.family];
    return family.appears == Appears::first_event && !had_event(family, sample);
  });
}

}  // namespace tacho::metrics
