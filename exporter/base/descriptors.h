#pragma once

namespace tacho {

/// Opens /dev/null in place of those of descriptors 0 to 2 that are closed: else the next file or BPF map would get
/// such a number, and what is written to stderr would go there.
void occupy_standard_descriptors();

/// Makes the soft limit of open descriptors the hard one. Usual soft limits (1024) are for programs that call select(),
/// which this one does not.
void raise_descriptor_limit();

}  // namespace tacho
