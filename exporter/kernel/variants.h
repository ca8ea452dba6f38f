#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "kernel/bpf_object.h"

namespace tacho::kernel {

/// One of several compilations of the same programs, for kernels and hooks with different abilities.
struct Variant {
  std::string_view name;  ///< how state is kept, as users see it
  ObjectSource source;
  std::span<const Hook> hooks;
};

/// The bytes that a header of bpf/embed has, or a skeleton.
inline ObjectSource source_of(std::string_view name, const void* (*bytes_of)(std::size_t*)) {
  std::size_t size = 0;
  const auto* bytes = static_cast<const std::byte*>(bytes_of(&size));
  return {name, {bytes, size}};
}

/// Loads the first variant that can observe all its events; if none can, the one that misses the fewest. Its name
/// becomes the method of a hook "state". Variants in which no hook knows a forced method are left out.
/// @return an error that names what every variant lacks, if none can be used
Result<std::unique_ptr<BpfObject>> load_best(std::span<const Variant> variants, const LoadOptions& options,
                                             const BpfObject::Setup& setup);

}  // namespace tacho::kernel
