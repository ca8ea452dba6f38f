#include "config/load.h"

#include <cerrno>
#include <exception>

#include "base/regular_file.h"
#include "config/keys.h"
#include "config/type.h"

namespace tacho::config {
namespace {

void read_document(std::string_view yaml, Config& config, Problems& problems) {
  const Source source(yaml);
  if (!check_source(source, problems)) {
    return;
  }
  const auto root = parse_yaml(source, problems);
  if (!root || root->kind == Node::Kind::null) {
    return;
  }
  const auto& type = config_type();
  type.read(*root, config, {.problems = problems, .all_keys = type.keys, .path = {}});
}

std::string remedy(int code) {
  switch (code) {
    case ENOENT:
      return "check the path after --config.file; a relative one starts at the working directory";
    case EACCES:
      return "make it readable for the user that tacho runs as";
    case EISDIR:
      return "name a file in it";
    default:
      return "name a readable file";
  }
}

}  // namespace

Loaded load_text(std::string_view yaml, std::string_view file_name) {
  Loaded loaded{.file_name = std::string(file_name), .config = {}, .errors = {}, .warnings = {}, .empty = false};
  Problems problems;
  try {
    read_document(yaml, loaded.config, problems);
  } catch (const std::exception& error) {
    problems.error({.line = 1, .column = 1}, std::string("cannot be read: ") + error.what());
  }
  loaded.errors = problems.take_errors();
  loaded.warnings = problems.take_warnings();
  return loaded;
}

Loaded load_file(const std::string& path) {
  const auto text = read_regular_file(path, kMaxFileSize);
  if (!text) {
    return {.file_name = path,
            .config = {},
            .errors = {{.where = {}, .message = text.error().message, .hint = remedy(text.error().code)}},
            .warnings = {},
            .empty = false};
  }
  Loaded loaded = load_text(*text, path);
  loaded.empty = text->empty();
  return loaded;
}

}  // namespace tacho::config
