#include "config/glob.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tacho::config {

/// Turns one pattern into tokens, from left to right.
class GlobCompiler {
 public:
  explicit GlobCompiler(std::string_view pattern) : rest_(pattern), size_(pattern.size()) { glob_.pattern_ = pattern; }

  Result<Glob> compile() && {
    while (!rest_.empty()) {
      const char c = cut();
      if (c == '*') {
        star();
      } else if (c == '?') {
        add(Glob::Kind::one);
      } else if (c == '[') {
        if (auto result = set(); !result) {
          return std::unexpected(result.error());
        }
      } else if (c != '\\') {
        add(Glob::Kind::literal, c);
      } else if (rest_.empty()) {
        return fail("nothing follows the backslash at the end (write \\\\ for a backslash)");
      } else {
        add(Glob::Kind::literal, cut());
      }
    }
    return std::move(glob_);
  }

 private:
  char cut() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  void add(Glob::Kind kind, char literal = 0) { glob_.tokens_.push_back({.kind = kind, .literal = literal}); }

  void star() {
    const bool starts_component = glob_.tokens_.empty() || ends_with_slash();
    if (!rest_.starts_with('*')) {
      add(Glob::Kind::star);
      return;
    }
    rest_.remove_prefix(std::min(rest_.find_first_not_of('*'), rest_.size()));
    if (starts_component && rest_.starts_with('/')) {
      add(Glob::Kind::optional_pair);  // "**/" may be left out as a whole: a/**/b matches a/b
    }
    add(Glob::Kind::any_path);
  }

  [[nodiscard]] bool ends_with_slash() const {
    const auto& last = glob_.tokens_.back();
    return last.kind == Glob::Kind::literal && last.literal == '/';
  }

  /// What follows "[" up to its "]"; a "]" that comes first is a member, as in POSIX.
  Result<void> set() {
    const std::size_t start = size_ - rest_.size();
    const bool negated = rest_.starts_with('!');
    if (negated) {
      rest_.remove_prefix(1);
    }
    if (rest_.starts_with('^')) {
      return fail("[^ is not defined (write [! for characters outside a set, [\\^ for a ^)");
    }
    Glob::Set members(256);
    for (bool first = true; first || !rest_.starts_with(']'); first = false) {
      const auto low = member();
      if (!low) {
        return fail("the [ at character " + std::to_string(start) + " is not closed (write \\[ for a bracket)");
      }
      auto high = low;
      if (rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']') {
        rest_.remove_prefix(1);
        high = member();
      }
      if (!high || *high < *low) {
        return fail("a range in the set at character " + std::to_string(start) + " is upside down");
      }
      std::fill(members.begin() + *low, members.begin() + *high + 1, true);
    }
    rest_.remove_prefix(1);
    if (members['/'] && !negated) {
      return fail("a set cannot hold /");
    }
    if (negated) {
      members.flip();
      members['/'] = false;
    }
    glob_.tokens_.push_back({.kind = Glob::Kind::set, .set = static_cast<std::uint16_t>(glob_.sets_.size())});
    glob_.sets_.push_back(std::move(members));
    return {};
  }

  std::optional<unsigned char> member() {
    if (rest_.starts_with('\\')) {
      rest_.remove_prefix(1);
    }
    if (rest_.empty()) {
      return std::nullopt;
    }
    return static_cast<unsigned char>(cut());
  }

  std::string_view rest_;
  std::size_t size_;
  Glob glob_;
};

Result<Glob> Glob::compile(std::string_view pattern) {
  if (pattern.empty()) {
    return fail("an empty pattern matches nothing");
  }
  if (pattern.size() > kMaxLength) {
    return fail("a pattern is at most " + std::to_string(kMaxLength) + " bytes long");
  }
  return GlobCompiler(pattern).compile();
}

bool Glob::accepts(const Token& token, char c) const {
  switch (token.kind) {
    case Kind::literal:
      return c == token.literal;
    case Kind::one:
    case Kind::star:
      return c != '/';
    case Kind::set:
      return sets_[token.set][static_cast<unsigned char>(c)];
    case Kind::any_path:
      return true;
    case Kind::optional_pair:
      return false;
  }
  return false;
}

/// Marks a state and those reached from it without a character. State i stands before token i.
void Glob::enter(std::vector<std::uint8_t>& states, std::size_t state) const {
  while (states[state] == 0) {
    states[state] = 1;
    if (state == tokens_.size()) {
      return;
    }
    switch (tokens_[state].kind) {
      case Kind::optional_pair:
        enter(states, state + 3);  // past "**" and "/"
        ++state;
        break;
      case Kind::star:
      case Kind::any_path:
        ++state;
        break;
      default:
        return;
    }
  }
}

/// Follows all ways through the pattern at once (Thompson's simulation), so that no pattern makes it go back.
bool Glob::matches(std::string_view text) const {
  std::vector<std::uint8_t> now(tokens_.size() + 1);
  std::vector<std::uint8_t> next(tokens_.size() + 1);
  enter(now, 0);
  for (const char c : text) {
    std::ranges::fill(next, 0);
    bool alive = false;
    for (std::size_t state = 0; state < tokens_.size(); ++state) {
      if (now[state] == 0 || !accepts(tokens_[state], c)) {
        continue;
      }
      const bool stays = tokens_[state].kind == Kind::star || tokens_[state].kind == Kind::any_path;
      enter(next, stays ? state : state + 1);
      alive = true;
    }
    if (!alive) {
      return false;
    }
    now.swap(next);
  }
  return now.back() != 0;
}

}  // namespace tacho::config
