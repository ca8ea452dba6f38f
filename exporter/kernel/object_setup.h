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

/// An object that is open and not yet loaded: for settings that the kernel must not see too late. One that cannot be
/// made is remembered, the first of them, and the object is not loaded.
class ObjectSetup {
 public:
  ObjectSetup(bpf_object* object, bool preemptible) : object_(object), preemptible_(preemptible) {}

  /// Whether a program that is in use may be interrupted by another one on its CPU.
  [[nodiscard]] bool preemptible() const { return preemptible_; }

  /// Sets a `const volatile` global. The size must be the variable's.
  template <class T>
  void set_constant(std::string_view variable, const T& value) {
    keep(try_constant(variable, value));
  }
  /// The same of one that only some objects have: nothing is remembered.
  template <class T>
  Result<void> try_constant(std::string_view variable, const T& value) {
    return try_constant(variable, std::as_bytes(std::span(&value, 1)));
  }
  void set_max_entries(std::string_view map, std::uint32_t entries);
  /// Declares the maps inside an array of maps: mappable arrays.
  void set_inner_array(std::string_view map, std::size_t value_size, std::uint32_t entries);
  /// Uses another object's map of the same name and shape instead of an own one.
  void reuse_map(std::string_view map, int descriptor);
  /// The same for every map of another object of the same source, except the map of its constants.
  void reuse_maps(bpf_object* other);

  /// Whether all settings were made; the first that was not.
  [[nodiscard]] const Result<void>& done() const { return done_; }

 private:
  Result<void> try_constant(std::string_view variable, std::span<const std::byte> value);
  bpf_map* find(std::string_view map);
  void keep(const Result<void>& setting);
  void keep(int status, std::string_view what, std::string_view of);

  bpf_object* object_;
  bool preemptible_;
  Result<void> done_;
  std::vector<UniqueFd> templates_;  // of inner maps, needed until the object is loaded
};

/// A mappable BPF array. The descriptor may be closed once something else holds the map.
Result<UniqueFd> create_mappable_array(const std::string& name, std::size_t value_size, std::uint32_t entries);

}  // namespace tacho::kernel
