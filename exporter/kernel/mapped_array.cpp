#include "kernel/mapped_array.h"

#include <sys/mman.h>
#include <unistd.h>

namespace tacho::kernel {

Result<MappedArray> MappedArray::open(int map, std::size_t value_size, std::size_t entries, Access access) {
  MappedArray array;
  array.stride_ = (value_size + 7) / 8 * 8;
  array.entries_ = entries;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t length = (array.stride_ * entries + page - 1) / page * page;
  const int protection = access == Access::read ? PROT_READ : PROT_READ | PROT_WRITE;
  void* memory = ::mmap(nullptr, length, protection, MAP_SHARED, map, 0);
  if (memory == MAP_FAILED) {
    return fail_errno("cannot map a BPF array of " + std::to_string(length) + " bytes into memory");
  }
  array.memory_ = {static_cast<std::byte*>(memory), length};
  return array;
}

MappedArray& MappedArray::operator=(MappedArray&& other) noexcept {
  std::swap(memory_, other.memory_);
  stride_ = other.stride_;
  entries_ = other.entries_;
  return *this;
}

MappedArray::~MappedArray() {
  if (!memory_.empty()) {
    ::munmap(memory_.data(), memory_.size());
  }
}

}  // namespace tacho::kernel
