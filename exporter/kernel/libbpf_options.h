#pragma once

namespace tacho::kernel {

/// The options of a call of libbpf, each of them at its default. LIBBPF_OPTS is C.
template <class Options>
Options libbpf_options() {
  Options options{};
  options.sz = sizeof(options);
  return options;
}

}  // namespace tacho::kernel
