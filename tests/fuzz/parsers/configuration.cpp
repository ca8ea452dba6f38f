// --config.file, as somebody has written it.
#include <string>

#include "config/load.h"
#include "config/source.h"
#include "fuzzer.h"

using namespace tacho;
using fuzz::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const config::Loaded loaded = config::load_text(text, "tacho.yaml");
  const std::size_t lines = config::Source(text).line_count();
  for (const auto& list : {loaded.errors, loaded.warnings}) {
    for (const config::Diagnostic& problem : list) {
      require(problem.where.line >= 1 && static_cast<std::size_t>(problem.where.line) <= lines + 1 &&
                  problem.where.column >= 1,
              "a problem has a place in the file");
      require(!problem.message.empty(), "a problem is told");
      const std::string told = config::format(problem, loaded.file_name);
      require(told.starts_with("tacho.yaml:") && told.find('\0') == std::string::npos, "it can be printed");
    }
  }
  if (loaded.errors.empty()) {
    require(loaded.config.window.count() > 0, "what is accepted can be used");
    require(loaded.config.limits.max_targets >= 1, "what is accepted can be used");
  }
  return 0;
}
