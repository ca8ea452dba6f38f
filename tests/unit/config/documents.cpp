#include "documents.h"

#include <algorithm>
#include <string_view>

#include "config/keys.h"
#include "config/type.h"

namespace tacho::config {
namespace {

constexpr std::size_t kWidth = 110;

constexpr std::string_view kHead =
    R"(# Configuration of tacho: every key with its default. All are optional, and without a file tacho watches every server
# on the machine. `tacho check --config.file FILE` names all that is wrong with a file and starts nothing.
# Generated from exporter/config/keys.cpp; a unit test fails when it is stale (TACHO_UPDATE_GOLDEN=1 renews it).
# yaml-language-server: $schema=tacho.schema.json
)";

std::string indentation(std::size_t depth) {
  std::string out(2 * depth, ' ');
  return out;
}

/// Comment lines with the words of `text`; lines after the first are indented by `hang` more.
void comment(std::string& out, std::size_t depth, std::size_t hang, std::string_view text) {
  const std::string start = indentation(depth) + "# ";
  std::string line = start;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (line.size() + word.size() > kWidth) {
      line.pop_back();  // the space after the last word
      out += line + '\n';
      line = start + std::string(hang, ' ');
    }
    line += word;
    line += text.empty() ? "\n" : " ";
  }
  out += line;
}

/// "doc (summary)."; sections need no summary. Behind it, when a change takes effect.
std::string explain(const KeyInfo& key) {
  const std::string effect(key.effect());
  if (!key.keys.empty()) {
    return key.doc + effect;
  }
  return key.doc.substr(0, key.doc.size() - 1) + " (" + key.summary + ")." + effect;
}

/// The keys of a list's items as comments.
void list_items(std::string& out, std::size_t depth, std::size_t level, const std::vector<KeyInfo>& keys) {
  for (const KeyInfo& key : keys) {
    const std::string start = std::string(2 * level, ' ') + key.name + (key.required ? " (required): " : ": ");
    comment(out, depth, 2 * level + 4, start + explain(key));
    list_items(out, depth, level + 1, key.keys);
  }
}

void write_keys(std::string& out, std::size_t depth, const std::vector<KeyInfo>& keys);

void write_list(std::string& out, std::size_t depth, const KeyInfo& key) {
  if (!key.keys.empty()) {
    comment(out, depth, 0, "Keys of an entry:");
    list_items(out, depth, 1, key.keys);
  }
  if (!key.example.empty()) {
    comment(out, depth, 0, "For example:");
    std::string_view rest = key.example;
    while (!rest.empty()) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      out += indentation(depth) + "#   " + std::string(line) + '\n';
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    }
  }
  out += indentation(depth) + key.name + ": " + key.default_value.dump() + '\n';
}

void write_key(std::string& out, std::size_t depth, const KeyInfo& key) {
  comment(out, depth, 0, explain(key));
  if (key.is_list) {
    write_list(out, depth, key);
  } else if (!key.keys.empty()) {
    out += indentation(depth) + key.name + ":\n";
    write_keys(out, depth + 1, key.keys);
  } else {
    const Json& value = key.default_value;
    out += indentation(depth) + key.name + ": " + (value.is_string() ? value.get<std::string>() : value.dump()) + '\n';
  }
}

void write_keys(std::string& out, std::size_t depth, const std::vector<KeyInfo>& keys) {
  for (const KeyInfo& key : keys) {
    if (depth == 0) {
      out += '\n';
    }
    write_key(out, depth, key);
  }
}

}  // namespace

std::string json_schema() {
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "Configuration of tacho"},
                 {"description", "Generated from exporter/config/keys.cpp."}};
  schema.update(config_type().schema);
  return schema.dump(2) + '\n';
}

std::string reference_yaml() {
  std::string out{kHead};
  write_keys(out, 0, config_type().keys);
  return out;
}

}  // namespace tacho::config
