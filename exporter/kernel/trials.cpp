#include "kernel/trials.h"

#include <algorithm>
#include <array>
#include <cerrno>

namespace tacho::kernel {

bool is_passing(int error) {
  constexpr std::array kPassing{ENOMEM, EINTR, EAGAIN, EMFILE, ENFILE};
  return std::ranges::find(kPassing, error) != kPassing.end();
}

}  // namespace tacho::kernel
