#include "fuzz/shrink.h"

#include <algorithm>

namespace tacho::fuzz {

Life shrink(Life life, const std::function<bool(const Life&)>& fails) {
  for (std::size_t part = std::max<std::size_t>(life.size() / 2, 1);;) {
    bool spared = false;
    for (std::size_t at = 0; at < life.size();) {
      Life rest = life;
      const auto from = rest.begin() + static_cast<std::ptrdiff_t>(at);
      rest.erase(from, from + static_cast<std::ptrdiff_t>(std::min(part, life.size() - at)));
      if (!rest.empty() && fails(rest)) {
        life = std::move(rest);
        spared = true;
      } else {
        at += part;
      }
    }
    if (part > 1) {
      part /= 2;
    } else if (!spared) {
      return life;
    }
  }
}

}  // namespace tacho::fuzz
