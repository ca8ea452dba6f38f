#pragma once

#include <array>
#include <string_view>

namespace tacho::top {

/// A part of a request's time, and the letter that stands for it in bars.
struct Part {
  std::string_view name;
  char mark = '?';
};

/// The parts as time passes: what comes first in a request stands first.
inline constexpr std::array<Part, 11> kParts{{{"queue", 'q'},
                                              {"receive", 'r'},
                                              {"handover", 'h'},
                                              {"cpu", 'C'},
                                              {"runqueue", 'w'},
                                              {"lock", 'l'},
                                              {"disk", 'd'},
                                              {"network", 'n'},
                                              {"event", 'e'},
                                              {"sleep", 's'},
                                              {"other", 'o'}}};

}  // namespace tacho::top
