#pragma once

#include <bpf/libbpf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace tacho::kernel {

/// An object that is open and not yet loaded: for settings that the kernel must not see too late.
class ObjectSetup {
 public:
  ObjectSetup(bpf_object* object, bool preemptible) : object_(object), preemptible_(preemptible) {}

  /// Whether a program that is in use may be interrupted by another one on its CPU.
  [[nodiscard]] bool preemptible() const { return preemptible_; }

  /// Sets a `const volatile` global. The size must be the variable's.
  Result<void> set_constant(std::string_view variable, std::span<const std::byte> value);
  template <class T>
  Result<void> set_constant(std::string_view variable, const T& value) {
    return set_constant(variable, std::as_bytes(std::span(&value, 1)));
  }
  Result<void> set_max_entries(std::string_view map, std::uint32_t entries);
  /// Declares the maps inside an array of maps: mappable arrays.
  Result<void> set_inner_array(std::string_view map, std::size_t value_size, std::uint32_t entries);
  /// Uses another object's map of the same name and shape instead of an own one.
  Result<void> reuse_map(std::string_view map, int descriptor);
  /// The same for every map of another object of the same source, except the map of its constants.
  Result<void> reuse_maps(bpf_object* other);

 private:
  Result<bpf_map*> find(std::string_view map);

  bpf_object* object_;
  bool preemptible_;
  std::vector<UniqueFd> templates_;  // of inner maps, needed until the object is loaded
};

/// A mappable BPF array. The descriptor may be closed once something else holds the map.
Result<UniqueFd> create_mappable_array(const std::string& name, std::size_t value_size, std::uint32_t entries);

}  // namespace tacho::kernel
