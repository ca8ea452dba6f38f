#include "config/labels.h"

#include <algorithm>
#include <array>

namespace tacho::config {
namespace {

constexpr std::array<std::string_view, 28> kReserved{
    // who the series is about
    "target", "namespace", "pod", "container", "cgroup", "container_id", "runtime", "user",
    // labels of single families
    "collector", "condition", "direction", "hook", "method", "mode", "outcome", "part", "peer", "probe", "program",
    "reason", "role", "state", "syscall", "version",
    // labels with a meaning of their own in Prometheus
    "instance", "job", "le", "quantile"};

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
constexpr std::string_view kNotFirst = "0123456789";

bool follows_grammar(std::string_view name) {
  return !name.empty() && kLetters.contains(name[0]) &&
         std::ranges::all_of(name, [](char c) { return kLetters.contains(c) || kNotFirst.contains(c); });
}

void read_labels(const Node& node, std::map<std::string, std::string>& out, const Context& context,
                 const Type<std::string>& value) {
  if (node.kind != Node::Kind::mapping) {
    context.wrong_type(node, "a mapping of label names to values", "write {name: value}");
    return;
  }
  std::map<std::string_view, int> lines;
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const Node& key = node.keys[i];
    if (key.kind != Node::Kind::scalar) {
      context.error(key.where, "a label name must be a word, not " + std::string(describe(key)));
      continue;
    }
    if (const auto checked = check_label_name(key.text); !checked) {
      context.error(key.where, "label " + quote(key.text) + ' ' + checked.error().message);
    }
    if (const auto [first, added] = lines.emplace(key.text, key.where.line); !added) {
      context.error(key.where, "duplicate label " + quote(key.text),
                    "first given in line " + std::to_string(first->second));
      continue;
    }
    value.read(node.items[i], out[key.text], context.below(quote(key.text)));
  }
}

}  // namespace

std::span<const std::string_view> reserved_labels() {
  return kReserved;
}

Result<void> check_label_name(std::string_view name) {
  if (!follows_grammar(name)) {
    return fail("is not a label name: those consist of letters, digits and _, and do not start with a digit");
  }
  if (name.starts_with("__")) {
    return fail("starts with __, which Prometheus keeps for itself");
  }
  if (std::ranges::find(kReserved, name) != kReserved.end()) {
    return fail("is reserved: tacho or Prometheus sets it");
  }
  return {};
}

Type<std::map<std::string, std::string>> labels() {
  const auto value = text({.summary = "text", .max_bytes = 1024, .check = {}});
  Type<std::map<std::string, std::string>> type;
  type.summary = "a mapping of label names to text";
  type.schema = {{"type", "object"},
                 {"propertyNames", {{"pattern", "^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$"}, {"not", {{"enum", kReserved}}}}},
                 {"additionalProperties", value.schema}};
  type.show = [](const std::map<std::string, std::string>& shown) {
    Json out = Json::object();
    for (const auto& [name, text] : shown) {
      out[name] = text;
    }
    return out;
  };
  type.read = [value](const Node& node, std::map<std::string, std::string>& out, const Context& context) {
    read_labels(node, out, context, value);
  };
  return type;
}

}  // namespace tacho::config
