#pragma once

#include <map>
#include <string_view>

#include "metrics/value.h"

namespace tacho::probes::test {

/// What a probe's decode makes of nothing: the row of a target that has just been added. Each NAME_decode_test.cpp has
/// one.
class EmptyRow {
 public:
  using Decode = void (*)(metrics::Row&);

  EmptyRow(std::string_view probe, Decode decode) { all().emplace(probe, decode); }

  static std::map<std::string_view, Decode>& all() {
    static std::map<std::string_view, Decode> rows;
    return rows;
  }
};

}  // namespace tacho::probes::test
