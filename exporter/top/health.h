#pragma once

#include "base/result.h"
#include "top/url.h"

namespace tacho::top {

/// Asks who serves at `url`, a tacho of this machine, for /-/healthy; its certificate is not examined. Well is who
/// answers 200, or 401: then somebody serves and wants a password. Waits two seconds. Errors name the address and what
/// came instead.
Result<void> ask_health(Url url);

}  // namespace tacho::top
