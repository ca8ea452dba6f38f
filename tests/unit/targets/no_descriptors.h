#pragma once

#include <sys/resource.h>
#include <unistd.h>

namespace tacho::targets::test {

/// What the call returns while this process can open nothing: EMFILE. Assertions stay outside:
/// UndefinedBehaviorSanitizer opens a pipe to look at an object's type, and takes every object for a wrong one where it
/// cannot.
template <class Call>
auto without_descriptors(Call call) {
  class None {
   public:
    None() {
      ::getrlimit(RLIMIT_NOFILE, &before_);
      const int lowest = ::dup(STDERR_FILENO);
      ::close(lowest);
      rlimit none = before_;
      none.rlim_cur = static_cast<rlim_t>(lowest);
      ::setrlimit(RLIMIT_NOFILE, &none);
    }
    None(const None&) = delete;
    None& operator=(const None&) = delete;
    ~None() { ::setrlimit(RLIMIT_NOFILE, &before_); }

   private:
    rlimit before_{};
  };
  const None none;
  return call();
}

}  // namespace tacho::targets::test
