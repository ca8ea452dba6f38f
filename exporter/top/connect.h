#pragma once

#include <functional>

#include "base/result.h"
#include "base/unique_fd.h"
#include "top/url.h"

namespace tacho::top {

/// A blocking socket that is connected, and whose reads and writes give up after ten seconds. Tries every address of
/// the name, three seconds each.
/// @param created called with each socket before it connects; false: give up
Result<UniqueFd> connect_to(const Url& url, const std::function<bool(int socket)>& created);

}  // namespace tacho::top
