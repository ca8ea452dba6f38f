#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/types.h"

namespace tacho::config {

/// Label names that tacho or Prometheus itself gives to series; a second label of that name would make the exposition
/// invalid. Every label of a metric family must be here.
std::span<const std::string_view> reserved_labels();

/// Errors: not `[a-zA-Z_][a-zA-Z0-9_]*` (the label grammar of Prometheus), starting with `__` (kept for Prometheus),
/// reserved.
Result<void> check_label_name(std::string_view name);

/// A mapping of label names to their values.
Type<std::map<std::string, std::string>> labels();

}  // namespace tacho::config
