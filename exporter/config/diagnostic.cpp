#include "config/diagnostic.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/utf8.h"

namespace tacho::config {
namespace {

constexpr std::size_t kMaxShown = 100;
constexpr std::size_t kMaxQuoted = 60;

bool before(const Location& left, const Location& right) {
  return std::tie(left.line, left.column) < std::tie(right.line, right.column);
}

}  // namespace

std::string format(const Diagnostic& diagnostic, std::string_view file_name) {
  std::string out = printable(file_name);
  if (diagnostic.where.line > 0) {
    out += ':' + std::to_string(diagnostic.where.line) + ':' + std::to_string(diagnostic.where.column);
  }
  out += diagnostic.severity == Severity::error ? ": error: " : ": warning: ";
  out += diagnostic.message;
  if (!diagnostic.hint.empty()) {
    out += " (" + diagnostic.hint + ')';
  }
  return out;
}

std::string quote(std::string_view text) {
  if (text.size() <= kMaxQuoted) {
    return '\'' + printable(text) + '\'';
  }
  std::size_t cut = 0;
  while (cut < kMaxQuoted) {
    cut += std::max<std::size_t>(utf8_sequence(text.substr(cut)), 1);
  }
  return '\'' + printable(text.substr(0, cut)) + "…'";
}

void Problems::error(Location where, std::string message, std::string hint) {
  errors_.add({.severity = Severity::error, .where = where, .message = std::move(message), .hint = std::move(hint)});
}

void Problems::warning(Location where, std::string message, std::string hint) {
  warnings_.add(
      {.severity = Severity::warning, .where = where, .message = std::move(message), .hint = std::move(hint)});
}

void Problems::List::add(Diagnostic diagnostic) {
  if (shown.size() >= kMaxShown) {
    ++more;
    return;
  }
  // By place; what is found at one place stays in the order of finding.
  const auto behind = std::ranges::upper_bound(shown, diagnostic.where, before, &Diagnostic::where);
  shown.insert(behind, std::move(diagnostic));
}

std::vector<Diagnostic> Problems::List::take() {
  if (more > 0) {
    const Diagnostic& last = shown.back();
    shown.push_back({.severity = last.severity,
                     .where = last.where,
                     .message = "and " + std::to_string(more) + " more",
                     .hint = {}});
  }
  return std::exchange(shown, {});
}

}  // namespace tacho::config
