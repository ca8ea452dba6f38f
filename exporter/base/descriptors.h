#pragma once

namespace tacho {

/// Opens /dev/null for each of the descriptors 0 to 2 that is closed. Otherwise the next file or BPF map would get that
/// number, and text for stderr would be written into it.
void occupy_standard_descriptors();

/// Makes the soft limit of open descriptors the hard one. Usual soft limits (1024) are for programs that call select(),
/// which this one does not.
void raise_descriptor_limit();

}  // namespace tacho
