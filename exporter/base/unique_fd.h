#pragma once

#include <unistd.h>

#include <utility>

namespace tacho {

/// Owns a file descriptor; −1 is none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int descriptor) : fd_(descriptor) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      reset(std::exchange(other.fd_, -1));
    }
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;
  ~UniqueFd() { reset(); }

  [[nodiscard]] int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

  /// The descriptor, which the caller closes from now on.
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }

  void reset(int descriptor = -1) {
    if (fd_ >= 0) {
      ::close(fd_);
    }
    fd_ = descriptor;
  }

 private:
  int fd_ = -1;
};

}  // namespace tacho
