#include "targets/workload.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include "targets/plain_number.h"

namespace tacho::targets {
namespace {

/// Generated parts of names have no vowels and no 0, 1, 3, so that they make no words (apimachinery's util/rand).
constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
/// A ReplicaSet's hash is a decimal number whose digits are written with these ten.
constexpr std::string_view kDigits = "456789bcdf";
constexpr std::size_t kSuffix = 5;
/// A longer name is cut before the suffix is put behind it, wherever that is.
constexpr std::size_t kLongestName = 63;

bool consists_of(std::string_view text, std::string_view letters) {
  return !text.empty() && text.find_first_not_of(letters) == std::string_view::npos;
}

bool is_suffix(std::string_view text) {
  return text.size() == kSuffix && consists_of(text, kAlphabet);
}

/// 32 bits are ten digits in three of four cases; a short word of these letters is rather somebody's own.
bool is_hash(std::string_view text) {
  return (text.size() >= 6 && text.size() <= 10 && consists_of(text, kDigits)) ||
         ((text.size() == 9 || text.size() == 10) && consists_of(text, kAlphabet));
}

/// Minutes since 1970 of the years 2017 to 2053, in which no date (20260131) lies; before Kubernetes 1.21 seconds.
bool is_schedule(std::uint64_t value) {
  return (value >= 25'000'000 && value <= 44'000'000) || (value >= 1'483'228'800 && value < 1'700'000'000);
}

struct Cut {
  std::string_view head;
  std::string_view tail;
};

/// At the last dash; nothing where one side would be empty.
std::optional<Cut> cut(std::string_view text) {
  const auto dash = text.rfind('-');
  if (dash == std::string_view::npos || dash == 0 || dash + 1 == text.size()) {
    return std::nullopt;
  }
  return Cut{text.substr(0, dash), text.substr(dash + 1)};
}

Workload make(std::string_view name, std::string_view kind) {
  return {std::string(name), std::string(kind)};
}

/// Whose pods get five letters behind `owner`.
Workload generated(std::string_view owner) {
  const auto parts = cut(owner);
  if (!parts) {
    return make(owner, "DaemonSet");
  }
  const auto value = plain_number(parts->tail);
  if (value && is_schedule(*value)) {
    return make(parts->head, "CronJob");
  }
  if (is_hash(parts->tail)) {
    return make(parts->head, "Deployment");
  }
  if (value && parts->tail.size() <= 5) {
    const auto before = cut(parts->head);
    const auto scheduled = before ? plain_number(before->tail) : std::nullopt;
    return scheduled && is_schedule(*scheduled) ? make(before->head, "CronJob") : make(parts->head, "Job");
  }
  return make(owner, "DaemonSet");
}

bool is_static(std::string_view uid) {
  return uid.size() == 32 && uid.find('-') == std::string_view::npos;
}

}  // namespace

Workload workload_of(std::string_view pod, std::string_view pod_uid, std::string_view node) {
  if (pod.empty()) {
    return {};
  }
  if (is_static(pod_uid)) {
    const bool named = !node.empty() && pod.size() > node.size() + 1 && pod.ends_with(node) &&
                       pod[pod.size() - node.size() - 1] == '-';
    return make(named ? pod.substr(0, pod.size() - node.size() - 1) : pod, "StaticPod");
  }
  const auto parts = cut(pod);
  if (parts && is_suffix(parts->tail)) {
    return generated(parts->head);
  }
  if (pod.size() == kLongestName && is_suffix(pod.substr(kLongestName - kSuffix))) {
    // What stood before the suffix was cut: of a ReplicaSet's hash a part is left, of others the dash is gone.
    const std::string_view owner = pod.substr(0, kLongestName - kSuffix);
    const auto hash = cut(owner);
    return hash && hash->tail.size() <= 10 && consists_of(hash->tail, kAlphabet) ? make(hash->head, "Deployment")
                                                                                 : make(owner, "DaemonSet");
  }
  if (const auto ordinal = parts ? plain_number(parts->tail) : std::nullopt) {
    return make(parts->head, "StatefulSet");
  }
  return make(pod, "Pod");
}

}  // namespace tacho::targets
