#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "boundary/question.h"

namespace tacho::page {

/// The parameters after the '?' of a URL, decoded (WHATWG URL §5.1: %XX, '+' is a space). If a name occurs twice, the
/// last one counts.
std::map<std::string, std::string> parse_query(std::string_view query);

/// The number of a parameter, `missing` if the parameter is not there; an error if it is not a number or above `most`.
Result<std::uint64_t> number_of(const std::map<std::string, std::string>& parameters, const std::string& name,
                                std::uint64_t missing, std::uint64_t most);

/// sort, order (asc, desc), filter, offset, limit. Errors name the parameter and what it may be.
Result<boundary::TableQuery> table_query(std::string_view query);

/// Identifiers separated by commas.
std::vector<std::string> split_ids(std::string_view list);

}  // namespace tacho::page
