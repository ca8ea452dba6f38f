#pragma once

#include <cstdint>

#include "app.h"

namespace tacho::kernel_test {

/// How many requests have been recorded one by one: the position of a ring buffer's reader is on a page that user space
/// may map.
class Taken {
 public:
  explicit Taken(App& app);
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  ~Taken();
  [[nodiscard]] std::uint64_t records() const;

 private:
  void* page_;
};

}  // namespace tacho::kernel_test
