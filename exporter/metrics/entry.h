#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "metrics/family.h"
#include "metrics/value.h"

namespace tacho::metrics {

/// Where the samples of one family go.
class Sink {
 public:
  Sink(Row& row, std::size_t family) : row_(row), family_(family) {}

  void add(const Value& value) { row_.values.push_back(value); }
  void add(const Histogram& histogram) { row_.histograms.push_back(histogram); }
  void add(const FineHistogram& histogram) { row_.fine.push_back(histogram); }
  /// Of a family whose label values are known at run time only.
  void add(const std::string& label, const Value& value) { row_.dynamic.push_back({family_, label, value, {}}); }
  void add(const std::string& label, const Histogram& histogram) {
    row_.dynamic.push_back({family_, label, {}, histogram});
  }
  /// What `make` makes of each, in the order of the family's label values.
  template <std::ranges::range Range, class Make = std::identity>
  void each(const Range& range, Make make = {}) {
    for (const auto& one : range) {
      add(make(one));
    }
  }

 private:
  Row& row_;
  std::size_t family_;
};

/// A family and what a target has of it: the one place where a name and its values meet. An entry appends all samples
/// of its family, whatever they are: whether one at 0 is reported is the family's property (Family::on_first_event).
template <class Source>
struct Entry {
  Family family;
  void (*append)(const Source& source, Sink& out);
};

template <class Source, std::size_t N>
constexpr std::array<Family, N> families_of(const std::array<Entry<Source>, N>& entries) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<Family, N>{entries[I].family...};
  }(std::make_index_sequence<N>{});
}

/// Appends all samples of a source to its row.
/// @param first the number of the first entry's family among those of the probe
/// @throws std::logic_error an entry with other samples than its family says
template <class Source, std::size_t N>
void append_all(const std::array<Entry<Source>, N>& entries, const Source& source, Row& row, std::size_t first = 0) {
  for (std::size_t i = 0; i < N; ++i) {
    const Family& family = entries[i].family;
    const auto samples = [&] {
      return family.type != Type::histogram ? row.values.size() : family.fine ? row.fine.size() : row.histograms.size();
    };
    const std::size_t all = row.values.size() + row.fine.size() + row.histograms.size();
    const std::size_t before = samples();
    Sink sink(row, first + i);
    entries[i].append(source, sink);
    const std::size_t added = samples() - before;
    const std::size_t expected = family.dynamic() ? 0 : family.samples();
    if (row.values.size() + row.fine.size() + row.histograms.size() - all != added || added != expected) {
      throw std::logic_error(std::string(family.name) + " has other samples than its family says");
    }
  }
}

}  // namespace tacho::metrics
