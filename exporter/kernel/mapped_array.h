#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/result.h"

namespace tacho::kernel {

/// The memory of a mappable BPF array, mapped into this process: reading an element is a load, needs no system call
/// and no capability. Elements are 8-byte aligned, as the kernel lays them out.
class MappedArray {
 public:
  enum class Access : std::uint8_t { read, read_write };

  MappedArray() = default;
  /// @param map descriptor of a BPF_MAP_TYPE_ARRAY with BPF_F_MMAPABLE; may be closed afterwards
  static Result<MappedArray> open(int map, std::size_t value_size, std::size_t entries, Access access);

  MappedArray(MappedArray&& other) noexcept
      : memory_(std::exchange(other.memory_, {})), stride_(other.stride_), entries_(other.entries_) {}
  MappedArray& operator=(MappedArray&& other) noexcept;
  MappedArray(const MappedArray&) = delete;
  MappedArray& operator=(const MappedArray&) = delete;
  ~MappedArray();

  [[nodiscard]] std::size_t size() const { return entries_; }
  /// Element `index` seen as T; programs on other CPUs write it meanwhile.
  template <class T>
  [[nodiscard]] const T& at(std::size_t index) const {
    return *reinterpret_cast<const T*>(memory_.data() + index * stride_);
  }
  template <class T>
  [[nodiscard]] T& at(std::size_t index) {
    return *reinterpret_cast<T*>(memory_.data() + index * stride_);
  }

 private:
  std::span<std::byte> memory_;
  std::size_t stride_ = 0;
  std::size_t entries_ = 0;
};

}  // namespace tacho::kernel
