#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tacho {

/// Length in bytes (1 to 4) of the well-formed UTF-8 sequence that `text` starts with (RFC 3629: neither overlong forms
/// nor surrogates); 0 if it starts with none.
std::size_t utf8_sequence(std::string_view text);

/// `text` as one line that is safe for a terminal or a log: control characters, invisible characters, characters that
/// change the direction of text, and bytes that are not UTF-8 become \n, \t, \x1b …
std::string printable(std::string_view text);

/// `text` as UTF-8, and different for different texts as far as that goes: bytes that are none become \xff …
std::string well_formed(std::string_view text);

}  // namespace tacho
