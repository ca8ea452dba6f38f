#include "page/query.h"

#include <charconv>
#include <ranges>

namespace tacho::page {
namespace {

std::optional<char> decode_hex(std::string_view digits) {
  unsigned value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  return digits.size() == 2 && read.ptr == digits.data() + 2 ? std::optional(static_cast<char>(value)) : std::nullopt;
}

std::string decode(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto decoded = text.front() == '%' ? decode_hex(text.substr(1, 2)) : std::nullopt;
    out += decoded ? *decoded : text.front() == '+' ? ' ' : text.front();
    text.remove_prefix(decoded ? 3 : 1);
  }
  return out;
}

}  // namespace

std::map<std::string, std::string> parse_query(std::string_view query) {
  std::map<std::string, std::string> parameters;
  for (const auto part : query | std::views::split('&')) {
    const std::string_view pair(part.begin(), part.end());
    const std::size_t equals = std::min(pair.find('='), pair.size());
    if (!pair.empty()) {
      parameters[decode(pair.substr(0, equals))] = decode(pair.substr(std::min(equals + 1, pair.size())));
    }
  }
  return parameters;
}

Result<std::uint64_t> number_of(const std::map<std::string, std::string>& parameters, const std::string& name,
                                std::uint64_t missing, std::uint64_t most) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) {
    return missing;
  }
  const std::string& text = found->second;
  std::uint64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || number > most) {
    return fail(name + ": a number from 0 to " + std::to_string(most) + " is expected");
  }
  return number;
}

Result<boundary::TableQuery> table_query(std::string_view query) {
  const auto parameters = parse_query(query);
  boundary::TableQuery result;
  if (const auto sort = parameters.find("sort"); sort != parameters.end()) {
    const auto key = boundary::find_sort_key(sort->second);
    if (!key) {
      return fail("sort: one of " + boundary::sort_key_names() + " is expected");
    }
    result.sort = *key;
  }
  if (const auto order = parameters.find("order"); order != parameters.end()) {
    if (order->second != "asc" && order->second != "desc") {
      return fail("order: asc or desc is expected");
    }
    result.descending = order->second == "desc";
  }
  if (const auto filter = parameters.find("filter"); filter != parameters.end()) {
    if (filter->second.size() > boundary::kMaxFilter) {
      return fail("filter: at most " + std::to_string(boundary::kMaxFilter) + " bytes are expected");
    }
    result.filter = filter->second;
  }
  const auto offset = number_of(parameters, "offset", result.offset, UINT32_MAX);
  const auto limit = number_of(parameters, "limit", result.limit, boundary::kMaxRows);
  if (!offset || !limit) {
    return std::unexpected(offset ? limit.error() : offset.error());
  }
  result.offset = *offset;
  result.limit = *limit;
  return result;
}

std::vector<std::string> split_ids(std::string_view list) {
  std::vector<std::string> ids;
  for (const auto part : list | std::views::split(',')) {
    if (!part.empty()) {
      ids.emplace_back(part.begin(), part.end());
    }
  }
  return ids;
}

}  // namespace tacho::page
