#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacho::config {

/// A pattern for whole paths and names. `*` stands for any characters but '/', `?` for one of them, `[a-z0-9]` for one
/// of a set, `[!a-z]` for one outside it; `**` also crosses '/', and a component `**/` stands for any number of
/// components, none included. A backslash takes the next character as it is. Characters are bytes.
///
/// Matching takes at most length(text) × length(pattern) steps, whatever the two are.
class Glob {
 public:
  /// In bytes.
  static constexpr std::size_t kMaxLength = 1024;

  /// Errors: an empty pattern, one longer than kMaxLength, a set that is not closed or holds '/', a range upside down,
  /// a backslash at the end.
  static Result<Glob> compile(std::string_view pattern);

  [[nodiscard]] bool matches(std::string_view text) const;

  /// The pattern as given.
  [[nodiscard]] const std::string& pattern() const { return pattern_; }

 private:
  enum class Kind : std::uint8_t { literal, one, set, star, any_path, optional_pair };
  struct Token {
    Kind kind = Kind::literal;
    char literal = 0;
    std::uint16_t set = 0;  // index into sets_
  };
  using Set = std::vector<bool>;  // of the 256 bytes

  friend class GlobCompiler;

  [[nodiscard]] bool accepts(const Token& token, char c) const;
  void enter(std::vector<std::uint8_t>& states, std::size_t state) const;

  std::string pattern_;
  std::vector<Token> tokens_;
  std::vector<Set> sets_;
};

}  // namespace tacho::config
