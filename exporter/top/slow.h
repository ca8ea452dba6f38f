#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace tacho::top {

/// A request as /api/v1/slow reports it; texts are printable.
struct SlowRow {
  double age = 0;       ///< seconds
  double duration = 0;  ///< seconds
  struct Part {
    std::string name;
    double seconds = 0;
  };
  std::vector<Part> parts;  ///< in the order in which they are drawn
  std::string mode;
  std::string thread;  ///< name and number
  std::string client;
  std::string bytes;  ///< of the request, and of the send that began the reply
  std::string calls;  ///< empty: none
};

struct SlowTarget {
  std::string id;
  std::vector<SlowRow> requests;  ///< the slowest first
};

/// Reads the answer to /api/v1/slow; an error if it is another program's.
Result<std::vector<SlowTarget>> parse_slowest(const std::string& body);

/// What a request waited for, as letters: each part has so many of them as its share of the duration.
std::string bar(const SlowRow& row, std::size_t width);

/// The table of a target's requests as lines, its header first; and what the letters of the bars mean.
std::vector<std::string> slow_lines(const std::vector<SlowRow>& requests);
std::string slow_legend();

}  // namespace tacho::top
