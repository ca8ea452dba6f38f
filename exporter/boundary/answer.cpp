#include "boundary/answer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace tacho::boundary {
namespace {

constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
constexpr unsigned kNeverRun = 8;  // MFD_NOEXEC_SEAL of Linux 6.3, which this library's headers may not know

}  // namespace

Result<SealedText> SealedText::create() {
  UniqueFd fd(::memfd_create("tacho-answer", MFD_CLOEXEC | MFD_ALLOW_SEALING | kNeverRun));
  if (!fd) {
    fd = UniqueFd(::memfd_create("tacho-answer", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  }
  if (!fd) {
    return fail_errno("cannot make memory to be passed on");
  }
  return SealedText(std::move(fd));
}

void SealedText::append(std::string_view text) {
  const std::size_t before = size_;
  while (!text.empty()) {
    const ssize_t count = ::write(fd_.get(), text.data(), text.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      const int why = count < 0 ? errno : ENOSPC;
      cut(before);
      throw std::system_error(why, std::generic_category(), "an answer finds no memory");
    }
    size_ += static_cast<std::size_t>(count);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

void SealedText::cut(std::size_t size) {
  const auto at = static_cast<off_t>(size);
  if (::ftruncate(fd_.get(), at) != 0 || ::lseek(fd_.get(), at, SEEK_SET) != at) {
    throw std::system_error(errno, std::generic_category(), "an answer cannot be cut");
  }
  size_ = size;
}

Result<void> SealedText::seal() {
  if (::fcntl(fd_.get(), F_ADD_SEALS, kSeals) != 0) {
    return fail_errno("cannot seal an answer");
  }
  return {};
}

Result<MappedText> MappedText::map(const UniqueFd& sealed) {
  struct stat status{};
  const int seals = ::fcntl(sealed.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals || ::fstat(sealed.get(), &status) != 0) {
    return fail("an answer is not sealed");
  }
  MappedText text;
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) {
    return text;
  }
  // Private is as good as shared for what nobody changes, and kernels before 6.7 share no memory that is sealed.
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, sealed.get(), 0);
  if (memory == MAP_FAILED) {
    return fail_errno("cannot map an answer");
  }
  text.owner_ = std::shared_ptr<const void>(memory, [size](void* mapped) { ::munmap(mapped, size); });
  text.view_ = {static_cast<const char*>(memory), size};
  return text;
}

}  // namespace tacho::boundary
