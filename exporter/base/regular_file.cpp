#include "base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/unique_fd.h"

namespace tacho {

Result<std::string> read_regular_file(const std::string& path, std::size_t limit) {
  // A pipe without a writer would keep open waiting.
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));  // NOLINT(*-vararg)
  if (!file) {
    return fail_errno("cannot open the file");
  }
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) {
    return fail_errno("cannot read the file");
  }
  if (!S_ISREG(status.st_mode)) {
    return S_ISDIR(status.st_mode) ? fail_errno("cannot read the file", EISDIR) : fail("it is no regular file", EINVAL);
  }
  std::string text;
  std::array<char, 16384> buffer{};
  while (text.size() <= limit) {
    const std::size_t most = std::min(buffer.size(), limit + 1 - text.size());
    const ssize_t count = ::read(file.get(), buffer.data(), most);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return fail_errno("cannot read the file");
    }
    if (count == 0) {
      break;
    }
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

}  // namespace tacho
