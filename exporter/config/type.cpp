#include "config/type.h"

#include <algorithm>
#include <span>

#include "config/suggest.h"

namespace tacho::config {
namespace {

/// "'limits'": the section that has the key `name`; empty if none has, or several do.
std::string section_of(std::string_view name, const std::vector<KeyInfo>& keys, const std::string& path) {
  std::string found;
  for (const KeyInfo& key : keys) {
    if (key.name == name && !path.empty()) {
      return path;
    }
    const std::string below = section_of(name, key.keys, path.empty() ? key.name : path + '.' + key.name);
    if (!below.empty() && !found.empty()) {
      return {};
    }
    found += below;
  }
  return found;
}

std::string hint_for_unknown(std::string_view name, std::span<const std::string_view> names, const Context& context) {
  if (name == "<<") {
    return "merge keys are not supported: write the keys out";
  }
  std::string hint;
  if (const auto meant = nearest(name, names); !meant.empty()) {
    hint = "did you mean " + quote(meant) + '?';
  }
  if (const auto section = section_of(name, context.all_keys, ""); !section.empty()) {
    hint += (hint.empty() ? "" : " ") + quote(name) + " belongs under " + quote(section);
  }
  if (hint.empty()) {
    hint = "keys here are";
    for (const std::string_view key : names) {
      hint += (key == names.front() ? " " : ", ") + std::string(key);
    }
  }
  return hint;
}

void report_unknown(const Node& key, const std::vector<KeyInfo>& infos, const Context& context) {
  std::vector<std::string_view> names;
  names.reserve(infos.size());
  for (const KeyInfo& info : infos) {
    names.emplace_back(info.name);
  }
  context.error(key.where, "unknown key " + quote(key.text), hint_for_unknown(key.text, names, context));
}

}  // namespace

void Context::error(Location where, const std::string& message, std::string hint) const {
  problems.error(where, path.empty() ? message : path + ": " + message, std::move(hint));
}

void Context::wrong_type(const Node& node, std::string_view expected, std::string hint) const {
  if (node.kind == Node::Kind::null) {
    error(node.where, "has no value: expected " + std::string(expected), "give it a value or remove the key");
    return;
  }
  error(node.where, "expected " + std::string(expected) + ", not " + std::string(describe(node)), std::move(hint));
}

Context Context::below(std::string_view step) const {
  const bool dot = !path.empty() && !step.starts_with('[');
  return {.problems = problems, .all_keys = all_keys, .path = path + (dot ? "." : "") + std::string(step)};
}

namespace detail {

void read_section(const Node& node, const std::vector<KeyInfo>& infos, const Context& context,
                  const std::function<void(std::size_t, const Node&, const Context&)>& read) {
  std::vector<const Node*> seen(infos.size());
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const Node& key = node.keys[i];
    if (key.kind != Node::Kind::scalar) {
      context.error(key.where, "a key must be a word, not " + std::string(describe(key)));
      continue;
    }
    const auto info = std::ranges::find(infos, key.text, &KeyInfo::name);
    if (info == infos.end()) {
      report_unknown(key, infos, context);
      continue;
    }
    const auto index = static_cast<std::size_t>(info - infos.begin());
    if (seen[index] != nullptr) {
      context.error(key.where, "duplicate key " + quote(key.text),
                    "first given in line " + std::to_string(seen[index]->where.line));
      continue;
    }
    seen[index] = &key;
    read(index, node.items[i], context.below(info->name));
  }
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].required && seen[i] == nullptr) {
      context.error(node.where, "the key " + quote(infos[i].name) + " is missing", "add it");
    }
  }
}

Json section_schema(const std::vector<KeyInfo>& infos) {
  Json schema = {{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
  for (const KeyInfo& info : infos) {
    Json property = info.schema;
    property["description"] = info.doc + std::string(info.effect());
    if (!info.default_value.is_null()) {
      property["default"] = info.default_value;
    }
    schema["properties"][info.name] = std::move(property);
    if (info.required) {
      schema["required"].push_back(info.name);
    }
  }
  return schema;
}

}  // namespace detail

}  // namespace tacho::config
