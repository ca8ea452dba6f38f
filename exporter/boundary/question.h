#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tacho::boundary {

/// The keys by which the table of targets can be sorted. Targets without a value come last, ties are in the order of
/// the labels.
enum class SortKey : std::uint8_t { name, rate, p50, p99, saturation, queue, idle, conditions };
inline constexpr std::uint8_t kSortKeys = 8;

std::string_view sort_key_name(SortKey key);
std::optional<SortKey> find_sort_key(std::string_view name);
/// All names, for messages: "name, rate, p50 …".
std::string sort_key_names();

/// The requested part of the table of targets.
struct TableQuery {
  SortKey sort = SortKey::rate;
  bool descending = true;
  std::string filter;  ///< words, each of which is in the name, a label's value or the cgroup's path, whatever its case
  std::size_t offset = 0;
  std::size_t limit = 50;
};

enum class Kind : std::uint8_t {
  text_metrics,
  openmetrics,
  protobuf_metrics,
  targets,
  table,
  history,
  detail,
  slow,
  why,
  reload
};
inline constexpr std::uint8_t kKinds = 10;
constexpr bool is_page(Kind kind) {
  return kind <= Kind::protobuf_metrics;
}

inline constexpr std::uint32_t kMaxRows = 10'000;  ///< in one answer
inline constexpr std::size_t kMaxFilter = 1024;    ///< bytes
inline constexpr std::size_t kMaxIds = 1024;       ///< a request head has room for fewer

/// Everything that the web process can ask the collector: numbers, and one short text that is only searched for. It is
/// sent as these bytes, and nothing in it is parsed.
struct Question {
  std::uint64_t since = 0;   ///< of history and detail: a tick
  std::uint32_t offset = 0;  ///< of the table
  std::uint32_t limit = 0;
  std::uint16_t filter_size = 0;
  std::uint16_t id_count = 0;
  Kind kind = Kind::text_metrics;
  SortKey sort = SortKey::rate;
  std::uint8_t descending = 1;
  std::uint8_t padding = 0;
  std::array<char, kMaxFilter> filter = {};
  std::array<std::uint64_t, kMaxIds> ids = {};  ///< targets; of the metrics: the reader, as a number

  [[nodiscard]] TableQuery table_query() const;
  [[nodiscard]] std::vector<std::uint64_t> id_list() const;
};
static_assert(std::is_trivially_copyable_v<Question> && std::has_unique_object_representations_v<Question>);

/// Whether every field is within its bounds: the process that filled it in is not trusted.
bool is_valid(const Question& question);

/// The question for a part of the table; nothing if its filter is too long.
std::optional<Question> table_question(const TableQuery& query);

/// An identifier of a target as people see it, sixteen hexadecimal digits, and back; nothing if it is none.
std::string id_text(std::uint64_t id);
std::optional<std::uint64_t> parse_id(std::string_view text);

}  // namespace tacho::boundary
