#pragma once

#include <bpf/libbpf.h>

#include "base/result.h"

namespace tacho::kernel {

/// Programs that user space runs when it wants what they find: iterators, and programs that are handed keys.
bool is_run_at_will(const bpf_program* program);

/// Finds out whether the kernel would run such a program: that it loads does not say so. An iterator is started over
/// nothing or, if it goes over the elements of a map, over one of the object's, and not read.
Result<void> try_at_will(const bpf_program* program, const bpf_object* object);

}  // namespace tacho::kernel
