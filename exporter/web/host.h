#pragma once

#include <string_view>

namespace tacho::web {

/// Whether a Host header may be a name that this machine has for itself: an address, "localhost", a name without a dot,
/// or the machine's own. A request for another name over loopback may come from a page whose name was made to lead
/// there (DNS rebinding).
bool may_be_here(std::string_view host);

/// The same for a machine of that name.
bool may_be_here(std::string_view host, std::string_view machine);

}  // namespace tacho::web
