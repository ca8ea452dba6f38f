#pragma once

#include <cstdint>
#include <string>

namespace tacho::kernel_test {

/// A cgroup of the v2 hierarchy, gone at the end. Whoever was in it must have ended by then.
class Cgroup {
 public:
  /// @param path below the mount; its parent exists
  explicit Cgroup(std::string path);
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;
  ~Cgroup() { remove(); }

  /// Where the hierarchy is mounted.
  static const std::string& mount();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string directory() const { return mount() + path_; }
  /// Removes it now; waits for the kernel to have buried the last process.
  void remove();

 private:
  std::string path_;
  bool removed_ = false;
};

/// The cgroup of this run, in which every test makes its own: "/tacho-kernel-PID".
const std::string& playground();

/// A name that no other call returns.
std::string unique_name();

}  // namespace tacho::kernel_test
