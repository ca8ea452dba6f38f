#include "targets/target_news.h"

#include <algorithm>
#include <string_view>

namespace tacho::targets {
namespace {

/// More names than this make no line that somebody reads.
constexpr std::size_t kMostNames = 8;

std::string list(std::string_view what, std::vector<std::string> names) {
  if (names.empty()) {
    return {};
  }
  std::ranges::sort(names);
  std::string text = "; ";
  text += what;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNames); ++i) {
    text += (i == 0 ? " " : ", ") + names[i];
  }
  return names.size() <= kMostNames ? text : text + " and " + std::to_string(names.size() - kMostNames) + " more";
}

}  // namespace

void TargetNews::note(const std::vector<std::string>& came, const std::vector<std::string>& went) {
  came_.insert(came_.end(), came.begin(), came.end());
  went_.insert(went_.end(), went.begin(), went.end());
}

std::optional<std::string> TargetNews::line(Time now, std::size_t live) {
  if ((came_.empty() && went_.empty()) || (said_ && now - *said_ < kSpacing)) {
    return std::nullopt;
  }
  said_ = now;
  std::string text = std::to_string(live) + (live == 1 ? " target" : " targets") + list("new:", std::move(came_)) +
                     list("gone:", std::move(went_));
  came_.clear();
  went_.clear();
  return text;
}

}  // namespace tacho::targets
