#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <utility>

#include "config/node.h"

namespace tacho::config {
namespace {

constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMaxWeight = 500'000;

/// Leaves the library's parser at the first event that cannot be accepted; never leaves parse_yaml.
struct Refused {
  Diagnostic diagnostic;
};

Location locate(const Source& source, const YAML::Mark& mark) {
  return source.at(static_cast<std::size_t>(std::max(mark.line, 0)),
                   static_cast<std::size_t>(std::max(mark.column, 0)));
}

/// Builds the tree from events. YAML::Load is not used because it loses the positions of empty values, follows aliases
/// into cycles, and ignores every document but the first.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const Source& source) : source_(source) {}

  std::optional<Node> take() { return std::exchange(root_, std::nullopt); }

  /// Where the innermost list or mapping starts that is not complete; the start of the file where there is none.
  [[nodiscard]] Location innermost() const {
    return open_.empty() ? Location{.line = 1, .column = 1} : open_.back().value.node.where;
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (root_) {
      refuse(mark, "a second document or text after the end of the first",
             "keep one document in a file; check the indentation");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add_leaf(mark, anchor, {}); }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    refuse_tag(mark, tag);
    Node node;
    node.kind = Node::Kind::scalar;
    node.plain = tag != kQuoted;
    node.text = text;
    add_leaf(mark, anchor, std::move(node));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchored_.find(anchor);
    if (found == anchored_.end()) {
      refuse(mark, "an alias inside the value that it names", "write the value out");
    }
    Anchored copy = found->second;
    copy.node.where = at(mark);
    count(mark, copy.weight);
    add(std::move(copy), 0);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, Node::Kind::sequence);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, Node::Kind::mapping);
  }
  void OnMapEnd() override { close(); }

 private:
  static constexpr std::string_view kUntagged = "?";
  static constexpr std::string_view kQuoted = "!";  // the library's tag of a scalar in quotes

  struct Anchored {
    Node node;
    std::size_t weight = 1;  // of the subtree: one a node, and its text, so that aliases cannot multiply either
  };
  struct Open {
    Anchored value;
    YAML::anchor_t anchor = 0;
  };

  [[nodiscard]] Location at(const YAML::Mark& mark) const { return locate(source_, mark); }

  [[noreturn]] void refuse(const YAML::Mark& mark, std::string message, std::string hint) const {
    // NOLINTNEXTLINE(hicpp-exception-baseclass)
    throw Refused{{.where = at(mark), .message = std::move(message), .hint = std::move(hint)}};
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != kUntagged && tag != kQuoted) {
      refuse(mark, "YAML tags are not supported", "remove the tag, or quote a value that starts with !");
    }
  }

  void count(const YAML::Mark& mark, std::size_t weight) {
    weight_ += weight;
    if (weight_ > kMaxWeight) {
      refuse(mark, "too many values, aliases expanded", "is it a configuration of tacho?");
    }
  }

  void add_leaf(const YAML::Mark& mark, YAML::anchor_t anchor, Node node) {
    constexpr std::size_t kTextUnit = 64;
    const std::size_t weight = 1 + node.text.size() / kTextUnit;
    node.where = at(mark);
    count(mark, weight);
    add({.node = std::move(node), .weight = weight}, anchor);
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, Node::Kind kind) {
    refuse_tag(mark, tag);
    if (open_.size() >= kMaxDepth) {
      refuse(mark, "nested deeper than " + std::to_string(kMaxDepth) + " levels", "is it a configuration of tacho?");
    }
    count(mark, 1);
    Open& opened = open_.emplace_back();
    opened.anchor = anchor;
    opened.value.node.kind = kind;
    opened.value.node.where = at(mark);
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.value), done.anchor);
  }

  void add(Anchored value, YAML::anchor_t anchor) {
    if (anchor != 0) {
      anchored_[anchor] = value;
    }
    if (open_.empty()) {
      root_ = std::move(value.node);
      return;
    }
    open_.back().value.weight += value.weight;
    Node& parent = open_.back().value.node;
    const bool is_key = parent.kind == Node::Kind::mapping && parent.keys.size() == parent.items.size();
    if (parent.kind == Node::Kind::mapping && !is_key && value.node.kind == Node::Kind::null) {
      value.node.where = parent.keys.back().where;  // the library places an absent value at whatever comes next
    }
    (is_key ? parent.keys : parent.items).push_back(std::move(value.node));
  }

  const Source& source_;
  std::optional<Node> root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchored_;
  std::size_t weight_ = 0;
};

/// What usually lies behind a message of the library.
std::string_view hint_for(std::string_view message) {
  struct Known {
    std::string_view message, hint;
  };
  static constexpr std::array<Known, 10> kKnown{{
      {"illegal map value", "check the indentation, and quote a value that contains ': '"},
      {"end of map not found", "check the indentation: this fits no level above, or belongs in quotes"},
      {"end of sequence not found", "check the indentation: this fits no level above"},
      {"end of map flow not found", "a { is not closed, or a comma is missing"},
      {"end of sequence flow not found", "a [ is not closed, or a comma is missing"},
      {"illegal flow end", "a ] or } closes nothing; quote it if it is part of a value"},
      {"illegal EOF in scalar", "a quote is not closed"},
      {"the referenced anchor is not defined", "quote a glob that starts with *"},
      {"alias not found after *", "quote a glob that starts with *"},
      {"unknown token", "quote a value that starts with @, % or `"},
  }};
  const auto* const found = std::ranges::find(kKnown, message, &Known::message);
  return found == kKnown.end() ? std::string_view{} : found->hint;
}

}  // namespace

std::optional<Node> parse_yaml(const Source& source, Problems& problems) {
  // The library forgives a quote that is never closed when a line break follows; without the last one it does not.
  const std::string_view text = source.text().substr(0, source.text().find_last_not_of(" \t\r\n") + 1);
  std::istringstream stream{std::string(text)};
  TreeBuilder builder(source);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.take().value_or(Node());
  } catch (const Refused& refused) {
    problems.error(refused.diagnostic.where, refused.diagnostic.message, refused.diagnostic.hint);
  } catch (const YAML::Exception& error) {
    // At the end of the file the library's line and column are wrong; what is not complete there says more anyway.
    const bool inside = error.mark.pos >= 0 && static_cast<std::size_t>(error.mark.pos) < text.size();
    problems.error(inside ? locate(source, error.mark) : builder.innermost(), "not valid YAML: " + error.msg,
                   std::string(hint_for(error.msg)));
  } catch (const std::exception& error) {
    problems.error({.line = 1, .column = 1}, std::string("cannot be parsed as YAML: ") + error.what());
  }
  return std::nullopt;
}

}  // namespace tacho::config
