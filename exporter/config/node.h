#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/source.h"

namespace tacho::config {

/// A YAML document as plain values with positions; aliases are replaced by copies of what they name.
struct Node {
  enum class Kind : std::uint8_t { null, scalar, sequence, mapping };

  Kind kind = Kind::null;
  bool plain = true;        ///< scalar without quotes: it may be meant as a number or a truth value
  Location where;           ///< of a null: of its key, if it has one
  std::string text;         ///< of a scalar
  std::vector<Node> keys;   ///< of a mapping, in the file's order, duplicates included; keys[i] belongs to items[i]
  std::vector<Node> items;  ///< of a sequence or mapping

  /// The value of the first key `name`; nullptr if there is none.
  [[nodiscard]] const Node* find(std::string_view name) const;
};

/// The kind of a scalar without quotes in YAML 1.2's core schema.
enum class PlainKind : std::uint8_t { text, integer, real, boolean };
PlainKind plain_kind(std::string_view text);

/// "a list", "a number", "nothing": what a message calls the value.
std::string_view describe(const Node& node);

/// The one document of a file; a null node for an empty one. Refused with an error, besides invalid YAML: several
/// documents, tags, nesting deeper than 32, aliases that name their own parent or multiply beyond reason.
std::optional<Node> parse_yaml(const Source& source, Problems& problems);

}  // namespace tacho::config
