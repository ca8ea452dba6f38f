#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tacho::kernel_test {

/// While it lives, the kernel runs none of this process' programs of a name: what happens meanwhile is missed, as where
/// a program is skipped because it interrupts itself. Only programs behind tracepoints can be taken away and come back.
class Missed {
 public:
  /// @param program as the kernel knows it, cut to 15 characters
  explicit Missed(const std::string& program);
  Missed(const Missed&) = delete;
  Missed& operator=(const Missed&) = delete;
  ~Missed();

  /// Whether there is such a program; where hooks are no tracepoints there is none.
  [[nodiscard]] bool any() const { return !away_.empty(); }

 private:
  struct Link {
    int place;  ///< descriptor by which its owner holds it
    std::uint32_t program;
    std::string tracepoint;  ///< empty: the program knows its own
  };

  std::vector<Link> away_;
};

}  // namespace tacho::kernel_test
