#pragma once

#include <mutex>
#include <utility>

namespace tacho {

/// A value that one thread replaces and others copy. There is no way to it but through its own lock.
template <class T>
class Guarded {
 public:
  void set(T value) {
    const std::lock_guard lock(mutex_);
    std::swap(value_, value);  // the old one is freed after the lock
  }
  [[nodiscard]] T get() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }

 private:
  mutable std::mutex mutex_;
  T value_{};
};

}  // namespace tacho
