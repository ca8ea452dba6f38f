#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scrape/view.h"
#include "top/frame.h"

namespace tacho::top {

/// Columns that a character string takes in a terminal, by the locale (wcwidth); UTF-8.
std::size_t display_width(std::string_view text);

/// `text` in exactly `width` columns: filled with blanks, or cut with an ellipsis.
std::string fit(std::string_view text, std::size_t width, bool right = false);

/// Rows of cells as lines, each column as wide as its widest cell; the first `right` columns stand at the right.
std::vector<std::string> aligned(const std::vector<std::vector<std::string>>& rows, std::size_t right);

/// Whether one of these conditions, separated by spaces, judges what the table shows first: requests, saturation.
bool is_doubtful(std::string_view conditions);

/// Points as ▁▂▃▄▅▆▇█, the latest at the right, relative to the highest.
std::string sparkline(std::span<const double> points, std::size_t width);

/// The last minute of each row, as the frames bring it.
class Trends {
 public:
  static constexpr std::size_t kPoints = 60;
  void follow(const Frame& frame);
  [[nodiscard]] std::span<const double> of(const std::string& id) const;

 private:
  std::string instance_;
  std::uint64_t tick_ = 0;
  std::map<std::string, std::vector<double>> rates_;
};

/// The table as lines, its header first; all of them `width` columns wide, columns that find no place left out from the
/// least important on. A width of 0 gives every column the room it needs.
/// @param sorted the column that is marked, @param trends none: no such column
std::vector<std::string> table_lines(const Frame& frame, std::size_t width, scrape::SortKey sorted, bool descending,
                                     const Trends* trends);

}  // namespace tacho::top
