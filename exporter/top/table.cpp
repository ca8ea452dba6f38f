#include "top/table.h"

#include <spdlog/fmt/fmt.h>
#include <wchar.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <ranges>

#include "base/quantities.h"
#include "base/utf8.h"
#include "scrape/condition_table.h"

namespace tacho::top {
namespace {

using scrape::SortKey;

constexpr std::size_t kGap = 2;
constexpr std::size_t kLeastName = 16;
constexpr int kHighestRank = 8;

std::size_t character_width(std::string_view character) {
  wchar_t wide = 0;
  mbstate_t state{};
  const std::size_t length = ::mbrtowc(&wide, character.data(), character.size(), &state);
  const int width = length == character.size() ? ::wcwidth(wide) : 1;
  return width < 0 ? 1 : static_cast<std::size_t>(width);
}

/// Takes a character off the front.
std::string_view next_character(std::string_view& text) {
  const std::string_view character = text.substr(0, std::max<std::size_t>(utf8_sequence(text), 1));
  text.remove_prefix(character.size());
  return character;
}

struct Column {
  std::string_view title;
  std::optional<SortKey> key;
  std::size_t width;  ///< without the gap before it
  bool right = true;
  int rank = 0;  ///< what is left out first has the highest
};

enum ColumnNumber : std::uint8_t {
  name,
  rate,
  trend,
  p50,
  p99,
  saturation,
  queued,
  idle,
  in_flight,
  calls,
  conditions
};

constexpr std::array kColumns{Column{"TARGET", SortKey::name, kLeastName, false, 0},
                              Column{"REQ/s", SortKey::rate, 9, true, 0},
                              Column{"LAST MINUTE", std::nullopt, 16, false, 9},
                              Column{"p50", SortKey::p50, 8, true, 4},
                              Column{"p99", SortKey::p99, 8, true, 1},
                              Column{"SAT", SortKey::saturation, 6, true, 2},
                              Column{"QUEUED", SortKey::queue, 7, true, 5},
                              Column{"IDLE", SortKey::idle, 6, true, 6},
                              Column{"IN FLIGHT", std::nullopt, 9, true, 7},
                              Column{"CALLS TO", std::nullopt, 22, false, 8},
                              Column{"CONDITIONS", SortKey::conditions, 14, false, 3}};

std::string cell(const Row& row, std::size_t column, const Trends* trends) {
  switch (column) {
    case ColumnNumber::name:
      return row.name;
    case ColumnNumber::rate:
      return format_rate(row.rate);
    case ColumnNumber::trend:
      return trends == nullptr ? "" : sparkline(trends->of(row.id), kColumns[ColumnNumber::trend].width);
    case ColumnNumber::p50:
      return format_time(row.p50);
    case ColumnNumber::p99:
      return format_time(row.p99);
    case ColumnNumber::saturation:
      return format_share(row.saturation);
    case ColumnNumber::queued:
      return format_share(row.queue_share);
    case ColumnNumber::idle:
      return format_share(row.idle_share);
    case ColumnNumber::in_flight:
      return row.in_flight ? std::to_string(*row.in_flight) : "–";
    case ColumnNumber::calls:
      return row.calls_to;
    default:
      return row.conditions;
  }
}

using Widths = std::array<std::size_t, kColumns.size()>;

/// What every column would like to have.
Widths natural_widths(const Frame& frame, bool with_trend) {
  Widths widths{};
  for (std::size_t column = 0; column < widths.size(); ++column) {
    widths.at(column) = kColumns.at(column).title.size() + 1;
    for (const Row& row : frame.rows) {
      widths.at(column) = std::max(widths.at(column), display_width(cell(row, column, nullptr)));
    }
  }
  widths[ColumnNumber::trend] = with_trend ? kColumns[ColumnNumber::trend].width : 0;
  return widths;
}

std::size_t taken(const Widths& widths) {
  std::size_t sum = 0;
  for (const std::size_t each : widths) {
    sum += each == 0 ? 0 : each + kGap;
  }
  return sum - kGap;
}

/// 0 for columns that are left out. Numbers have fixed places, so that they do not jump from second to second.
Widths choose_widths(const Frame& frame, std::size_t width, bool with_trend) {
  const Widths natural = natural_widths(frame, with_trend);
  Widths widths{};
  for (std::size_t column = 0; column < widths.size(); ++column) {
    const bool words = column == ColumnNumber::calls || column == ColumnNumber::conditions;
    const std::size_t most = kColumns.at(column).width;
    widths.at(column) = words ? std::min(most, natural.at(column)) : natural.at(column) == 0 ? 0 : most;
  }
  for (int rank = kHighestRank; rank > 0 && taken(widths) > width; --rank) {
    widths.at(static_cast<std::size_t>(
        std::distance(kColumns.begin(), std::ranges::find(kColumns, rank, &Column::rank)))) = 0;
  }
  const auto grow = [&widths, width](std::size_t column, std::size_t most) {
    const std::size_t spare = width - std::min(width, taken(widths));
    widths.at(column) += std::min(spare, most - std::min(most, widths.at(column)));
  };
  grow(ColumnNumber::name, natural[ColumnNumber::name]);
  if (widths[ColumnNumber::conditions] > 0) {
    grow(ColumnNumber::conditions, natural[ColumnNumber::conditions]);
  }
  grow(ColumnNumber::name, width);
  if (taken(widths) > width) {
    widths[ColumnNumber::name] -= std::min(widths[ColumnNumber::name] - 1, taken(widths) - width);
  }
  return widths;
}

template <class Text>
std::string line(const Widths& widths, Text text) {
  std::string result;
  for (std::size_t column = 0; column < widths.size(); ++column) {
    if (widths.at(column) > 0) {
      result += (result.empty() ? "" : "  ") + fit(text(column), widths.at(column), kColumns.at(column).right);
    }
  }
  return result;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    width += character_width(next_character(text));
  }
  return width;
}

std::string fit(std::string_view text, std::size_t width, bool right) {
  std::size_t taken = display_width(text);
  if (taken <= width) {
    const std::string blanks(width - taken, ' ');
    return right ? blanks + std::string(text) : std::string(text) + blanks;
  }
  std::string out;
  taken = 0;
  while (width > 0) {
    const std::string_view character = next_character(text);
    const std::size_t more = character_width(character);
    if (taken + more > width - 1) {
      break;
    }
    out += character;
    taken += more;
  }
  return width == 0 ? "" : out + "…" + std::string(width - 1 - taken, ' ');
}

std::vector<std::string> aligned(const std::vector<std::vector<std::string>>& rows, std::size_t right) {
  std::vector<std::size_t> widths;
  for (const auto& cells : rows) {
    widths.resize(std::max(widths.size(), cells.size()));
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(cells[i]));
    }
  }
  std::vector<std::string> lines;
  for (const auto& cells : rows) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      line += fit(cells[i], widths[i], i < right) + "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

bool is_doubtful(std::string_view conditions) {
  return std::ranges::any_of(conditions | std::views::split(' '), [](const auto word) {
    const std::string_view condition(word.begin(), word.end());
    return scrape::invalidates(condition, "tacho_requests_total") ||
           scrape::invalidates(condition, "tacho_saturation_ratio");
  });
}

std::string sparkline(std::span<const double> points, std::size_t width) {
  constexpr std::array<std::string_view, 8> kBlocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  points = points.last(std::min(points.size(), width));
  const double most = points.empty() ? 0 : *std::ranges::max_element(points);
  std::string text(width - points.size(), ' ');
  for (const double point : points) {
    const double share = most > 0 ? point / most : 0;
    text += kBlocks.at(static_cast<std::size_t>(std::clamp(std::round(share * 7), 0.0, 7.0)));
  }
  return text;
}

void Trends::follow(const Frame& frame) {
  if (frame.instance != instance_ || frame.tick < tick_) {
    rates_.clear();
  } else if (frame.tick == tick_) {
    return;
  }
  instance_ = frame.instance;
  tick_ = frame.tick;
  for (const Row& row : frame.rows) {
    std::vector<double>& points = rates_[row.id];
    points.push_back(std::isnan(row.last) ? 0 : row.last);
    if (points.size() > kPoints) {
      points.erase(points.begin());
    }
  }
  if (rates_.size() > 2 * frame.rows.size() + 1000) {
    std::erase_if(rates_, [&frame](const auto& entry) {
      return std::ranges::find(frame.rows, entry.first, &Row::id) == frame.rows.end();
    });
  }
}

std::span<const double> Trends::of(const std::string& id) const {
  const auto found = rates_.find(id);
  return found == rates_.end() ? std::span<const double>{} : found->second;
}

std::vector<std::string> table_lines(const Frame& frame, std::size_t width, SortKey sorted, bool descending,
                                     const Trends* trends) {
  const bool with_trend = trends != nullptr;
  const Widths widths = width == 0 ? natural_widths(frame, with_trend) : choose_widths(frame, width, with_trend);
  std::vector<std::string> lines;
  lines.push_back(line(widths, [sorted, descending](std::size_t column) {
    const Column& each = kColumns.at(column);
    return std::string(each.title) + (each.key == sorted ? (descending ? "▾" : "▴") : "");
  }));
  for (const Row& row : frame.rows) {
    lines.push_back(line(widths, [&row, trends](std::size_t column) { return cell(row, column, trends); }));
  }
  return lines;
}

}  // namespace tacho::top
