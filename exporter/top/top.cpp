#include "top/top.h"

#include <curses.h>
#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <array>
#include <clocale>
#include <ostream>

#include "top/ask.h"
#include "top/client.h"
#include "top/fetcher.h"
#include "top/screen.h"

namespace tacho::top {
namespace {

using scrape::SortKey;

constexpr std::size_t kAllRows = 10'000;
constexpr std::size_t kMostRows = 500;  ///< to scroll through

/// How a column is sorted first.
bool descends(SortKey key) {
  return key != SortKey::name && key != SortKey::idle;
}

/// The keys of the table; what a key means for the session.
class Session {
 public:
  Session(Screen& screen, Fetcher& fetcher, Choice choice, std::string address)
      : screen_(screen), fetcher_(fetcher), choice_(std::move(choice)) {
    shown_.address = std::move(address);
  }

  void run() {
    while (!quit_) {
      screen_.draw(shown_, choice_, trends_);
      std::array<pollfd, 2> events{pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{fetcher_.descriptor(), POLLIN, 0}};
      ::poll(events.data(), events.size(), -1);  // a change of the window's size interrupts it
      if ((events[0].revents & (POLLHUP | POLLERR)) != 0) {
        return;  // the terminal is gone
      }
      if (auto answer = fetcher_.take()) {
        take(std::move(*answer));
      }
      for (int key = screen_.key(); key != ERR; key = screen_.key()) {
        press(key);
      }
    }
  }

 private:
  void take(Result<Frame> answer) {
    if (!answer) {
      shown_.problem = answer.error().message;
      return;
    }
    shown_.problem.clear();
    trends_.follow(*answer);
    shown_.frame = std::move(*answer);
    move_to(shown_.selected);
  }

  void move_to(std::size_t row) {
    const std::size_t rows = shown_.frame ? shown_.frame->rows.size() : 0;
    shown_.selected = std::min(row, rows > 0 ? rows - 1 : 0);
  }

  void sort_by(SortKey key) {
    choice_.descending = key == choice_.sort ? !choice_.descending : descends(key);
    choice_.sort = key;
    ask();
  }

  void ask() { fetcher_.ask(table_path(choice_, kMostRows)); }

  void type(int key) {
    if (key == '\r' || key == '\n' || key == KEY_ENTER) {
      shown_.typing = false;
    } else if (key == kEscape) {
      shown_.typing = false;
      choice_.filter.clear();
    } else if (key == KEY_BACKSPACE || key == '\x7f' || key == '\b') {
      while (!choice_.filter.empty() && (static_cast<unsigned char>(choice_.filter.back()) & 0xc0U) == 0x80U) {
        choice_.filter.pop_back();
      }
      if (!choice_.filter.empty()) {
        choice_.filter.pop_back();
      }
    } else if (key >= ' ' && key < 256) {
      choice_.filter += static_cast<char>(key);
    } else {
      return;
    }
    ask();
  }

  void press(int key) {
    if (key == KEY_RESIZE) {
      return;  // drawn anew in any case
    }
    if (shown_.typing) {
      type(key);
      return;
    }
    switch (key) {
      case 'q':
      case kControlC:
        quit_ = true;
        break;
      case '/':
        shown_.typing = true;
        break;
      case kEscape:
        choice_.filter.clear();
        ask();
        break;
      case ' ':
        shown_.paused = !shown_.paused;
        fetcher_.pause(shown_.paused);
        break;
      case 'R':
        choice_.descending = !choice_.descending;
        ask();
        break;
      default:
        press_column(key);
        press_arrow(key);
    }
  }

  void press_column(int key) {
    constexpr std::array kKeys{std::pair{'n', SortKey::name},       std::pair{'r', SortKey::rate},
                               std::pair{'5', SortKey::p50},        std::pair{'9', SortKey::p99},
                               std::pair{'s', SortKey::saturation}, std::pair{'w', SortKey::queue},
                               std::pair{'i', SortKey::idle},       std::pair{'c', SortKey::conditions}};
    for (const auto& [name, column] : kKeys) {
      if (key == name) {
        sort_by(column);
      }
    }
  }

  void press_arrow(int key) {
    const std::size_t page = screen_.room();
    const std::size_t row = shown_.selected;
    switch (key) {
      case KEY_DOWN:
      case 'j':
        return move_to(row + 1);
      case KEY_UP:
      case 'k':
        return move_to(row - std::min<std::size_t>(row, 1));
      case KEY_NPAGE:
        return move_to(row + page);
      case KEY_PPAGE:
        return move_to(row - std::min(row, page));
      case KEY_HOME:
        return move_to(0);
      case KEY_END:
        return move_to(kMostRows);
      default:
        return;
    }
  }

  static constexpr int kEscape = 27;
  static constexpr int kControlC = 3;

  Screen& screen_;
  Fetcher& fetcher_;
  Choice choice_;
  Shown shown_;
  Trends trends_;
  bool quit_ = false;
};

Result<void> print_once(Client& client, const TopOptions& options, const Choice& choice, std::ostream& out) {
  const auto body = client.get(table_path(choice, kAllRows));
  if (!body) {
    return std::unexpected(body.error());
  }
  const auto frame = parse_frame(*body);
  if (!frame) {
    return std::unexpected(frame.error().within(client.url().text()));
  }
  if (options.json) {
    return write_json(*body, client.url().text(), out);
  }
  for (std::string& line : table_lines(*frame, 0, choice.sort, choice.descending, nullptr)) {
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
  return finish(out);
}

}  // namespace

Result<void> run(const TopOptions& options, std::ostream& out) {
  ::setlocale(LC_ALL, "");
  const auto sort = scrape::find_sort_key(options.sort);
  if (!sort) {
    return fail("--sort: one of " + scrape::sort_key_names() + " is expected", EINVAL);
  }
  const Choice choice{.sort = *sort, .descending = descends(*sort), .filter = options.filter};
  auto client = open_client(options);
  if (!client) {
    return std::unexpected(client.error());
  }
  if (options.once || options.json) {
    return print_once(**client, options, choice, out);
  }
  auto screen = Screen::open();
  if (!screen) {
    return std::unexpected(screen.error());
  }
  auto fetcher = Fetcher::start(**client, table_path(choice, kMostRows));
  if (!fetcher) {
    return std::unexpected(fetcher.error());
  }
  Session(**screen, **fetcher, choice, (*client)->url().text()).run();
  return {};
}

}  // namespace tacho::top
