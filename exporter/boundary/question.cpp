#include "boundary/question.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>

namespace tacho::boundary {
namespace {

constexpr std::array<std::string_view, kSortKeys> kNames{"name",       "rate",  "p50",  "p99",
                                                         "saturation", "queue", "idle", "conditions"};
constexpr std::size_t kIdDigits = 16;

}  // namespace

std::string_view sort_key_name(SortKey key) {
  return kNames.at(static_cast<std::size_t>(key));
}

std::optional<SortKey> find_sort_key(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  return found == kNames.end() ? std::nullopt
                               : std::optional(static_cast<SortKey>(std::distance(kNames.begin(), found)));
}

std::string sort_key_names() {
  return fmt::format("{}", fmt::join(kNames, ", "));
}

TableQuery Question::table_query() const {
  return {.sort = sort,
          .descending = descending != 0,
          .filter = std::string(filter.data(), filter_size),
          .offset = offset,
          .limit = limit};
}

std::vector<std::uint64_t> Question::id_list() const {
  const auto given = std::span(ids).first(id_count);
  return {given.begin(), given.end()};
}

bool is_valid(const Question& question) {
  return static_cast<std::uint8_t>(question.kind) < kKinds && static_cast<std::uint8_t>(question.sort) < kSortKeys &&
         question.descending <= 1 && question.limit <= kMaxRows && question.filter_size <= kMaxFilter &&
         question.id_count <= kMaxIds;
}

std::optional<Question> table_question(const TableQuery& query) {
  if (query.filter.size() > kMaxFilter) {
    return std::nullopt;
  }
  Question question{.offset = static_cast<std::uint32_t>(query.offset),
                    .limit = static_cast<std::uint32_t>(query.limit),
                    .filter_size = static_cast<std::uint16_t>(query.filter.size()),
                    .kind = Kind::table,
                    .sort = query.sort,
                    .descending = query.descending ? std::uint8_t{1} : std::uint8_t{0}};
  std::ranges::copy(query.filter, question.filter.begin());
  return question;
}

std::string id_text(std::uint64_t id) {
  return fmt::format("{:016x}", id);
}

std::optional<std::uint64_t> parse_id(std::string_view text) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  std::uint64_t id = 0;
  if (text.size() != kIdDigits || !std::ranges::all_of(text, is_digit)) {
    return std::nullopt;
  }
  std::from_chars(text.data(), text.data() + text.size(), id, 16);
  return id;
}

}  // namespace tacho::boundary
