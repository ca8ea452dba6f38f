#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace tacho::top {

/// What the requests of a target wait for, as /api/v1/why reports it; texts are printable.
struct WhyTarget {
  /// A column of the table: means of a period.
  struct Means {
    std::string title;
    double seconds = 0;         ///< a request
    std::vector<double> parts;  ///< the same, in the order of WhyTarget::parts
    double rate = 0;            ///< requests per second; NaN: unavailable
  };

  std::string id;
  std::string sentence;
  std::string next;                ///< empty: nothing
  std::vector<std::string> parts;  ///< that any period has, in the order in which a request goes through them
  std::vector<Means> means;        ///< now, slow ones, before
  std::vector<std::string> evidence;
};

/// Reads the answer to /api/v1/why; an error if it is another program's.
Result<std::vector<WhyTarget>> parse_why(const std::string& body);

/// The sentence, the table and what to look at next, as lines.
std::vector<std::string> why_lines(const WhyTarget& target);

}  // namespace tacho::top
