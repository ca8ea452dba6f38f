#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"
#include "cli.h"
#include "top/client.h"
#include "top/screen.h"

namespace tacho::top {

/// The path of the table of targets.
std::string table_path(const Choice& choice, std::size_t limit);

/// Who asks the tacho that the options name. Errors name the option.
Result<std::unique_ptr<Client>> open_client(const TopOptions& options);

}  // namespace tacho::top
