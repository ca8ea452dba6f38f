#include "base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace tacho {
namespace {

constexpr int kToRead = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

/// The file of a descriptor that refers to a path only, and that was found to be regular.
Result<UniqueFd> reopen(const UniqueFd& place, const struct stat& status, const std::string& path) {
  UniqueFd file(::open(("/proc/self/fd/" + std::to_string(place.get())).c_str(), kToRead));  // NOLINT(*-vararg)
  if (file || errno != ENOENT) {
    return file ? Result<UniqueFd>(std::move(file)) : fail_errno("cannot open the file");
  }
  // Without /proc another file may have come in its place meanwhile.
  file = UniqueFd(::open(path.c_str(), kToRead));  // NOLINT(*-vararg)
  struct stat found{};
  if (!file || ::fstat(file.get(), &found) != 0) {
    return fail_errno("cannot open the file");
  }
  if (found.st_dev != status.st_dev || found.st_ino != status.st_ino) {
    return fail("the file was replaced while it was opened", EAGAIN);
  }
  return file;
}

}  // namespace

Result<UniqueFd> open_regular_file(const std::string& path, Links links) {
  const int more = links == Links::refuse ? O_NOFOLLOW : 0;
  const UniqueFd place(::open(path.c_str(), O_PATH | O_CLOEXEC | more));  // NOLINT(*-vararg)
  if (!place) {
    return fail_errno("cannot open the file");
  }
  struct stat status{};
  if (::fstat(place.get(), &status) != 0) {
    return fail_errno("cannot read the file");
  }
  if (!S_ISREG(status.st_mode)) {
    return S_ISDIR(status.st_mode) ? fail_errno("cannot read the file", EISDIR) : fail("it is no regular file", EINVAL);
  }
  return reopen(place, status, path);
}

Result<std::string> read_regular_file(const std::string& path, std::size_t limit, Links links) {
  const auto file = open_regular_file(path, links);
  if (!file) {
    return std::unexpected(file.error());
  }
  std::string text;
  std::array<char, 16384> buffer;  // filled by read
  while (text.size() <= limit) {
    const std::size_t most = std::min(buffer.size(), limit + 1 - text.size());
    const ssize_t count = ::read(file->get(), buffer.data(), most);
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
