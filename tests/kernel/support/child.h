#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "base/unique_fd.h"

namespace tacho::kernel_test {

/// One end of a pair of pipes: pipes, because no probe looks at them.
class Line {
 public:
  Line(int in, int out) : in_(in), out_(out) {}
  void tell(std::uint64_t word = 1) const;
  /// What the other side tells; throws if it is gone.
  [[nodiscard]] std::uint64_t hear() const;
  /// A few words at once, which the other side hears at once.
  void tell(std::span<const std::uint64_t> words) const;
  void hear(std::span<std::uint64_t> words) const;
  [[nodiscard]] int in() const { return in_.get(); }
  [[nodiscard]] int out() const { return out_.get(); }

 private:
  UniqueFd in_;
  UniqueFd out_;
};

/// A forked process that joins a cgroup before it does anything else, and has none of our descriptors. What its body
/// throws goes to stderr and makes finish() fail. Dies with us, and after a minute anyway.
class Child {
 public:
  using Body = std::function<void(Line&)>;

  /// @param cgroup directory; empty: ours
  Child(const std::string& cgroup, const Body& body);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  /// Kills it if it still runs.
  ~Child();

  void tell(std::uint64_t word = 1) const { line_.tell(word); }
  void tell(std::span<const std::uint64_t> words) const { line_.tell(words); }
  /// What it tells; throws after half a minute or if it has ended.
  [[nodiscard]] std::uint64_t hear() const;
  void hear(std::span<std::uint64_t> words) const;
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Waits for its end, which must be a good one.
  void finish();
  void kill();

 private:
  Child(const std::string& cgroup, const Body& body, std::pair<Line, Line> lines);

  Line line_;
  pid_t pid_;
};

/// Moves a process to the cgroup of this directory; throws if the kernel refuses it.
void move_to(const std::string& directory, pid_t process);

/// A value that parent and children see alike.
template <class T>
class Shared {
 public:
  Shared() {
    void* memory = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      throw std::system_error(errno, std::system_category(), "mmap");
    }
    value_ = new (memory) T{};
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() {
    static_assert(std::is_trivially_destructible_v<T>);
    ::munmap(value_, sizeof(T));
  }
  T& operator*() const { return *value_; }
  T* operator->() const { return value_; }

 private:
  T* value_;
};

}  // namespace tacho::kernel_test
