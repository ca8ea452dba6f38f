#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tacho::kernel_test {

using Labels = std::map<std::string, std::string>;

/// The samples of an exposition (Prometheus text without escapes in label values).
class Page {
 public:
  explicit Page(const std::string& exposition);

  /// The one sample of this name that has these labels, and maybe others; a test that asks for none or for several
  /// fails. 0 for a series that appears with its first event, of a target that is on the page.
  [[nodiscard]] double value(const std::string& name, const Labels& labels = {}) const;
  /// All samples of this name that have these labels, added up; 0 if there is none.
  [[nodiscard]] double sum(const std::string& name, const Labels& labels) const;
  /// How many samples of this name have these labels.
  [[nodiscard]] std::size_t count(const std::string& name, const Labels& labels = {}) const;
  /// Upper bounds and counts (not cumulative) of the buckets of a histogram in which something is.
  [[nodiscard]] std::vector<std::pair<double, double>> buckets(const std::string& name, const Labels& labels) const;
  /// Names of the families that have a TYPE line.
  [[nodiscard]] const std::vector<std::string>& families() const { return families_; }

 private:
  struct Sample {
    Labels labels;
    double value = 0;
  };
  [[nodiscard]] bool has_not_appeared(const std::string& name, const Labels& labels) const;

  std::multimap<std::string, Sample> samples_;
  std::vector<std::string> families_;
};

}  // namespace tacho::kernel_test
