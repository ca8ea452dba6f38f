#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "web/message.h"

namespace tacho::web {

/// Whether a client that sent this Accept-Encoding takes gzip (RFC 9110 §12.5.3); without the header it does not.
bool accepts_gzip(const std::optional<std::string>& accept_encoding);

/// The text in the gzip format (RFC 1952), compressed fast rather than small; nothing if memory does not suffice.
/// @param keep false: each piece of `text` is freed once it is compressed
std::optional<Pieces> gzip(Pieces& text, bool keep);
std::optional<std::string> gzip(std::string text);

}  // namespace tacho::web
