#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kernel/bpf_object.h"
#include "kernel/map_keys.h"

namespace tacho::kernel {

namespace detail {

/// A map of an object, without types: only Map may hand bytes to it, which has compared their sizes.
class UntypedMap {
 public:
  UntypedMap() = default;
  /// @return an error if the object has no such map, or its keys or values have other sizes
  static Result<UntypedMap> open(const BpfObject& object, std::string_view name, std::size_t key_size,
                                 std::size_t value_size);

  [[nodiscard]] bool find(const void* key, void* value) const;
  Result<void> put(const void* key, const void* value) const;
  [[nodiscard]] bool erase(const void* key) const;
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  std::string name_;
  int descriptor_ = -1;  // the object's
};

}  // namespace detail

/// A map of a loaded object with keys and values of these types. Its sizes are compared once, when it is opened, so
/// that no call can read or write past a key or value. The object must outlive it. Thread-safe as the kernel's maps
/// are.
template <class Key, class Value>
class Map {
  static_assert(std::is_trivially_copyable_v<Key> && std::is_trivially_copyable_v<Value>);

 public:
  /// One that holds nothing and takes nothing.
  Map() = default;
  static Result<Map> open(const BpfObject& object, std::string_view name) {
    auto map = detail::UntypedMap::open(object, name, sizeof(Key), sizeof(Value));
    return map ? Result<Map>(Map(std::move(*map))) : std::unexpected(map.error());
  }

  [[nodiscard]] std::optional<Value> find(const Key& key) const {
    Value value{};
    return map_.find(&key, &value) ? std::optional(value) : std::nullopt;
  }
  [[nodiscard]] bool contains(const Key& key) const { return find(key).has_value(); }
  /// Adds an entry or changes its value. @return E2BIG where there is no room
  Result<void> put(const Key& key, const Value& value) const { return map_.put(&key, &value); }
  /// @return whether it was there
  bool erase(const Key& key) const { return map_.erase(&key); }
  /// All keys, see for_each_key().
  [[nodiscard]] Result<std::vector<Key>> keys() const { return keys_of<Key>(map_.descriptor()); }

 private:
  explicit Map(detail::UntypedMap map) : map_(std::move(map)) {}

  detail::UntypedMap map_;
};

}  // namespace tacho::kernel
