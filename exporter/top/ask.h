#pragma once

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "top/client.h"
#include "top/frame.h"
#include "top/options.h"
#include "top/screen.h"

namespace tacho::top {

/// The path of the table of targets.
std::string table_path(const Choice& choice, std::size_t limit);

/// A client of the tacho that the options name. Errors name the option.
Result<std::unique_ptr<Client>> open_client(const TopOptions& options);

/// What a tacho says about some of its targets.
struct About {
  Frame targets;       ///< the busiest that the filter matches, the busiest first
  std::string answer;  ///< of /api/v1/WHAT about these
  std::string url;     ///< of the tacho, for errors
};

/// Asks for the busiest targets that the filter matches, and then about them. An error if there are none.
/// @param what the last component of the path
/// @param most targets in one answer
Result<About> ask_about(const TopOptions& options, std::string_view what, std::size_t most);

/// Writes the document of an answer, in ASCII alone: names of others, and what another server says, steer no terminal.
Result<void> write_json(const std::string& answer, const std::string& url, std::ostream& out);

/// Says that more targets match than were shown, if so.
void tell_of_more(const Frame& targets, std::ostream& out);
/// Writes out what is on its way; an error if that cannot be.
Result<void> finish(std::ostream& out);

}  // namespace tacho::top
