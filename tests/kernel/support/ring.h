#pragma once

#include <linux/io_uring.h>
#include <netinet/in.h>

#include <cstdint>
#include <string>

#include "base/unique_fd.h"

namespace tacho::kernel_test {

/// An io_uring with room for one operation, each of which is waited for; what fails throws.
class Ring {
 public:
  /// Who does an operation.
  enum class By : std::uint8_t {
    caller,  ///< if it can be done at once
    worker,  ///< a thread of the kernel
  };

  Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  /// False where the kernel lets nobody use io_uring.
  [[nodiscard]] bool available() const { return static_cast<bool>(fd_); }
  void send(const UniqueFd& socket, const std::string& bytes, By by = By::caller);
  void send_to(const UniqueFd& socket, const std::string& bytes, std::uint16_t port);
  /// One receive, which gets `size` bytes.
  void receive(const UniqueFd& socket, std::size_t size);

 private:
  /// @return what it transferred
  std::int32_t operate(const io_uring_sqe& entry);
  static std::uint32_t& at(char* memory, std::uint32_t offset) {
    return *reinterpret_cast<std::uint32_t*>(memory + offset);
  }

  io_uring_params parameters_{};
  UniqueFd fd_;
  char* submissions_ = nullptr;  // mapped until the process ends
  char* completions_ = nullptr;
  io_uring_sqe* entry_ = nullptr;
};

}  // namespace tacho::kernel_test
