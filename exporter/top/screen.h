#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "scrape/view.h"
#include "top/frame.h"
#include "top/table.h"

namespace tacho::top {

/// What the user has chosen.
struct Choice {
  scrape::SortKey sort = scrape::SortKey::rate;
  bool descending = true;
  std::string filter;
};

/// What is on the screen beside the choice.
struct Shown {
  std::string address;
  std::optional<Frame> frame;  ///< the latest
  std::string problem;         ///< why there is none, or no newer one
  bool paused = false;
  bool typing = false;  ///< a filter is being typed
  std::size_t selected = 0;
};

/// The terminal, through curses, while it lives. One at a time.
class Screen {
 public:
  /// An error if there is no terminal, or none that is known.
  static Result<std::unique_ptr<Screen>> open();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen();

  /// Rows of the table that have room.
  [[nodiscard]] std::size_t room() const;
  void draw(const Shown& shown, const Choice& choice, const Trends& trends);
  /// The next key as curses names it, -1 if there is none now.
  [[nodiscard]] int key() const;

 private:
  Screen() = default;
  std::size_t first_ = 0;  ///< row at the top
};

}  // namespace tacho::top
