#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/node.h"

namespace tacho::config {

using Json = nlohmann::ordered_json;

/// One key as documents, suggestions and the JSON schema see it.
struct KeyInfo {
  std::string name;
  std::string doc;      ///< sentences, with a full stop
  std::string summary;  ///< of its type: "a duration from 2s to 1h"
  bool required = false;
  bool restart = false;       ///< takes effect when the program starts, not when the file is read again
  Json schema;                ///< of its value
  Json default_value;         ///< null: none
  std::vector<KeyInfo> keys;  ///< below it, or below each of its list's items
  bool is_list = false;
  std::string example;  ///< YAML below the key, for what a default cannot show

  /// The end of its documents: when a change takes effect, unless that is at once.
  [[nodiscard]] std::string_view effect() const { return restart ? " Takes effect at the next start." : ""; }
};

/// The context of a reader besides its node: where to report, the dotted path of the key it reads, all existing keys.
struct Context {
  Problems& problems;
  const std::vector<KeyInfo>& all_keys;
  std::string path;

  /// "path: message".
  void error(Location where, const std::string& message, std::string hint = {}) const;
  /// "path: expected …, not …"; for a value of the wrong type.
  void wrong_type(const Node& node, std::string_view expected, std::string hint = {}) const;
  [[nodiscard]] Context below(std::string_view step) const;
};

/// For a value that the program runs with and one that was read later: restores what takes effect at a start only, and
/// appends the dotted names of the keys that differ in it. `path` is that of the value, followed by a dot unless it is
/// empty.
template <class T>
using Hold = std::function<void(const T& running, T& fresh, const std::string& path, std::vector<std::string>& held)>;

/// The form of values of T in a file: reading, documents and schema derive from it.
template <class T>
struct Type {
  std::string summary;  ///< ends the sentence "expected …"
  Json schema;
  std::function<void(const Node&, T&, const Context&)>
      read;  ///< reports what is wrong and then leaves the value as it is
  std::function<Json(const T&)> show;
  Hold<T> hold;               ///< of a section; empty: nothing in it waits for a start
  std::vector<KeyInfo> keys;  ///< of a section
  bool is_list = false;
};

/// One key of a section that fills an Owner.
template <class Owner>
struct Key {
  KeyInfo info;
  std::function<void(const Node&, Owner&, const Context&)> read;
  Hold<Owner> hold = {};  ///< empty: nothing in it waits for a start

  Key required() && {
    info.required = true;
    info.default_value = nullptr;
    return std::move(*this);
  }
  Key example(std::string yaml) && {
    info.example = std::move(yaml);
    return std::move(*this);
  }
};

namespace detail {

template <class T>
Json show_default(const Type<T>& type, const T& value) {
  return type.show(value);
}
template <class T>
Json show_default(const Type<T>& type, const std::optional<T>& value) {
  return value ? type.show(*value) : Json();
}

template <class T>
T& ensure(T& value) {
  return value;
}
template <class T>
T& ensure(std::optional<T>& value) {
  return value ? *value : value.emplace();
}

/// Holds back the keys below a key; empty if none of them takes effect at a start only, or if there may be no or many
/// of them.
template <class Owner, class Member, class T>
Hold<Owner> hold_below(std::string_view name, Member Owner::* member, const Type<T>& type) {
  if constexpr (std::is_same_v<Member, T>) {
    if (type.hold) {
      return [member, hold = type.hold, name = std::string(name)](
                 const Owner& running, Owner& fresh, const std::string& path, std::vector<std::string>& held) {
        hold(running.*member, fresh.*member, path + name + '.', held);
      };
    }
  }
  return {};
}

/// Calls `read(i)` once for every key of the mapping that is in `infos`; reports unknown, duplicate and missing keys.
void read_section(const Node& node, const std::vector<KeyInfo>& infos, const Context& context,
                  const std::function<void(std::size_t key, const Node& value, const Context&)>& read);
Json section_schema(const std::vector<KeyInfo>& infos);

}  // namespace detail

/// A key whose value goes to `member`, of type T or optional<T>; its default is what Owner starts with. It takes effect
/// when the file is read again.
template <class Owner, class Member, class T>
Key<Owner> key(std::string_view name, Member Owner::* member, const Type<T>& type, std::string_view doc) {
  const Owner defaults{};
  return {.info = {.name = std::string(name),
                   .doc = std::string(doc),
                   .summary = type.summary,
                   .schema = type.schema,
                   .default_value = detail::show_default(type, defaults.*member),
                   .keys = type.keys,
                   .is_list = type.is_list,
                   .example = {}},
          .read = [member, read = type.read](
                      const Node& node, Owner& owner,
                      const Context& context) { read(node, detail::ensure(owner.*member), context); },
          .hold = detail::hold_below(name, member, type)};
}

/// A key that takes effect when the program starts: a reload restores the value that the program runs with (see
/// hold_back()).
template <class Owner, class Member, class T>
Key<Owner> restart_key(std::string_view name, Member Owner::* member, const Type<T>& type, std::string_view doc) {
  Key<Owner> made = key(name, member, type, doc);
  made.info.restart = true;
  made.hold = [member, name = std::string(name)](const Owner& running, Owner& fresh, const std::string& path,
                                                 std::vector<std::string>& held) {
    if (!(running.*member == fresh.*member)) {
      held.push_back(path + name);
      fresh.*member = running.*member;
    }
  };
  return made;
}

template <class T>
Type<std::vector<T>> list(Type<T> item, std::string summary) {
  Type<std::vector<T>> type;
  type.schema = {{"type", "array"}, {"items", item.schema}};
  type.summary = std::move(summary);
  type.keys = item.keys;
  type.is_list = true;
  type.read = [read = item.read, summary = type.summary](const Node& node, std::vector<T>& out,
                                                         const Context& context) {
    if (node.kind != Node::Kind::sequence) {
      context.wrong_type(node, summary, node.kind == Node::Kind::scalar ? "write [" + node.text + ']' : "");
      return;
    }
    out.clear();  // what is written replaces the default
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      T value{};
      read(node.items[i], value, context.below('[' + std::to_string(i) + ']'));
      out.push_back(std::move(value));
    }
  };
  type.show = [show = item.show](const std::vector<T>& values) {
    Json out = Json::array();
    for (const T& value : values) {
      out.push_back(show(value));
    }
    return out;
  };
  return type;
}

/// A mapping with fixed keys. `finish` checks what concerns several keys, after all of them were read.
template <class T>
Type<T> section(std::vector<Key<T>> keys, std::function<void(T&, const Node&, const Context&)> finish = {}) {
  Type<T> type;
  type.summary = "a mapping";
  for (const auto& key : keys) {
    type.keys.push_back(key.info);
  }
  type.schema = detail::section_schema(type.keys);
  type.show = [](const T&) { return Json(); };  // its keys show their own
  std::vector<Hold<T>> holds;
  for (const auto& key : keys) {
    if (key.hold) {
      holds.push_back(key.hold);
    }
  }
  if (!holds.empty()) {
    type.hold = [holds = std::move(holds)](const T& running, T& fresh, const std::string& path,
                                           std::vector<std::string>& held) {
      for (const Hold<T>& hold : holds) {
        hold(running, fresh, path, held);
      }
    };
  }
  type.read = [keys = std::move(keys), infos = type.keys, finish = std::move(finish)](const Node& node, T& out,
                                                                                      const Context& context) {
    if (node.kind != Node::Kind::mapping) {
      context.wrong_type(node, "a mapping", node.kind == Node::Kind::scalar ? "write key: value" : "");
      return;
    }
    detail::read_section(node, infos, context, [&](std::size_t i, const Node& value, const Context& inner) {
      keys[i].read(value, out, inner);
    });
    if (finish) {
      finish(out, node, context);
    }
  };
  return type;
}

}  // namespace tacho::config
