#include "top/screen.h"

#include <curses.h>
#include <langinfo.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <string_view>

#include "base/quantities.h"
#include "base/utf8.h"

namespace tacho::top {
namespace {

constexpr int kTitleRow = 0;
constexpr int kNoticeRow = 1;
constexpr int kHeaderRow = 2;
constexpr int kFirstRow = 3;
constexpr int kFooterRows = 1;
constexpr short kWarning = 1;
constexpr std::string_view kHelp =
    "q quit  / filter  n name  r rate  5 p50  9 p99  s saturation  w queued  i idle  c conditions  R reverse  space "
    "pause";

bool knows_utf8() {
  return std::string_view(::nl_langinfo(CODESET)) == "UTF-8";
}

/// What a terminal without UTF-8 can show.
std::string plain(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(utf8_sequence(text), 1);
    const std::string_view character = text.substr(0, length);
    text.remove_prefix(length);
    out += length == 1        ? std::string(character)
           : character == "µ" ? "u"
           : character == "–" ? "-"
           : character == "▾" ? "v"
           : character == "▴" ? "^"
                              : "?";
  }
  return out;
}

void put(int row, std::string_view text, attr_t attributes) {
  const auto width = static_cast<std::size_t>(std::max(COLS, 1));
  const std::string line = fit(knows_utf8() ? std::string(text) : plain(text), width);
  attrset(static_cast<int>(attributes));
  mvaddstr(row, 0, knows_utf8() ? line.c_str() : plain(line).c_str());
  attrset(A_NORMAL);
}

std::string title(const Shown& shown, const Choice& choice) {
  std::string text = "tacho  " + shown.address;
  if (shown.frame) {
    const Frame& frame = *shown.frame;
    const std::string count = frame.matched == frame.targets ? std::to_string(frame.targets)
                                                             : fmt::format("{} of {}", frame.matched, frame.targets);
    text += fmt::format("  {} targets  {} requests/s", count, format_rate(frame.rate));
  }
  text += fmt::format("  by {}{}", scrape::sort_key_name(choice.sort), shown.paused ? "  paused" : "");
  return text;
}

std::string notice(const Shown& shown, const Choice& choice) {
  if (shown.typing) {
    return "filter: " + printable(choice.filter) + "_";
  }
  if (!shown.problem.empty()) {
    return shown.problem;
  }
  if (!shown.frame) {
    return "asking …";
  }
  const Frame& frame = *shown.frame;
  std::string text;
  const auto add = [&text](const std::string& more) { text += (text.empty() ? "" : "; ") + more; };
  if (!choice.filter.empty()) {
    add("filter: " + printable(choice.filter));
  }
  if (frame.unattached_hooks > 0) {
    add(fmt::format("{} hooks are not attached", frame.unattached_hooks));
  }
  if (frame.lost_events > 0) {
    add(fmt::format("{} events lost", frame.lost_events));
  }
  if (!frame.absent.empty()) {
    add(fmt::format("not there: {}", fmt::join(frame.absent, ", ")));
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<Screen>> Screen::open() {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) {
    return fail("top: there is no terminal to draw on; --once prints the table, --json the data");
  }
  // Where these are exported, curses takes the size from them for good, whatever the window's is.
  ::unsetenv("COLUMNS");
  ::unsetenv("LINES");
  // initscr() would end the process when it fails.
  if (::newterm(nullptr, stdout, stdin) == nullptr) {
    const char* const terminal = std::getenv("TERM");
    return fail("top: the terminal \"" + printable(terminal == nullptr ? "" : terminal) +
                "\" is not known here; set TERM (such as TERM=xterm), or use --once");
  }
  cbreak();
  noecho();
  nonl();
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  set_escdelay(50);
  curs_set(0);
  if (has_colors() && std::getenv("NO_COLOR") == nullptr) {
    start_color();
    use_default_colors();
    init_pair(kWarning, COLOR_YELLOW, -1);
  }
  return std::unique_ptr<Screen>(new Screen);
}

Screen::~Screen() {
  endwin();
}

std::size_t Screen::room() const {
  return static_cast<std::size_t>(std::max(LINES - kFirstRow - kFooterRows, 1));
}

void Screen::draw(const Shown& shown, const Choice& choice, const Trends& trends) {
  erase();
  put(kTitleRow, title(shown, choice), A_BOLD);
  put(kNoticeRow, notice(shown, choice), shown.problem.empty() ? A_NORMAL : COLOR_PAIR(kWarning) | A_BOLD);
  if (shown.frame) {
    const auto lines =
        table_lines(*shown.frame, static_cast<std::size_t>(std::max(COLS, 1)), choice.sort, choice.descending, &trends);
    put(kHeaderRow, lines.front(), A_REVERSE);
    const std::size_t rows = lines.size() - 1;
    first_ = std::min({first_, shown.selected, rows - std::min(rows, room())});
    first_ = std::max(first_, shown.selected + 1 - std::min(shown.selected + 1, room()));
    for (std::size_t i = first_; i < std::min(rows, first_ + room()); ++i) {
      const Row& row = shown.frame->rows[i];
      const bool serious = is_doubtful(row.conditions);
      put(kFirstRow + static_cast<int>(i - first_), lines[i + 1],
          (serious ? attr_t{COLOR_PAIR(kWarning)} : A_NORMAL) |
              (i == shown.selected ? A_BOLD | A_UNDERLINE : A_NORMAL));
    }
    if (rows == 0) {
      put(kFirstRow, shown.frame->targets == 0 ? "no server is watched yet" : "no target matches the filter", A_NORMAL);
    }
  }
  if (LINES > kFirstRow + kFooterRows) {
    put(LINES - 1, kHelp, A_DIM);
  }
  refresh();
}

int Screen::key() const {
  const int key = getch();
  if (key == KEY_RESIZE) {
    // Terminals move or drop lines of a window that shrinks; curses would leave alone what it thinks is still there.
    clearok(curscr, TRUE);
  }
  return key;
}

}  // namespace tacho::top
