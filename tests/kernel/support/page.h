#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacho::kernel_test {

using Labels = std::map<std::string, std::string>;

/// The samples of an exposition (Prometheus text without escapes in label values).
class Page {
 public:
  /// Most tests ask for a few samples of a thousand: each is looked for when it is asked for.
  explicit Page(std::string exposition) : text_("\n" + std::move(exposition)) {}

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
  [[nodiscard]] std::vector<std::string> families() const;

 private:
  struct Sample {
    std::string_view labels;
    double value = 0;
  };
  /// All samples of this name that have these labels.
  [[nodiscard]] std::vector<Sample> samples(const std::string& name, const Labels& labels) const;
  [[nodiscard]] bool has_not_appeared(const std::string& name, const Labels& labels) const;

  std::string text_;
};

}  // namespace tacho::kernel_test
