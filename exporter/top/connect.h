#pragma once

#include <chrono>
#include <functional>

#include "base/result.h"
#include "base/unique_fd.h"
#include "top/url.h"

namespace tacho::top {

/// A blocking socket that is connected, and whose reads and writes give up after `patience`. Tries every address of
/// the name, three seconds each; without a name those of loopback.
/// @param created called with each socket before it connects; false: give up
Result<UniqueFd> connect_to(const Url& url, std::chrono::seconds patience,
                            const std::function<bool(int socket)>& created);

}  // namespace tacho::top
