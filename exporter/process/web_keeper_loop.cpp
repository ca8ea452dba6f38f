// What the keeper's thread does: starts the web process, gives it what it serves with, hears what becomes of it.
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <ranges>
#include <utility>

#include "process/confine.h"
#include "process/web_keeper.h"

namespace tacho::process {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kLookAtFiles = 100ms;    // for another web configuration
constexpr std::chrono::milliseconds kLookAtPulse = 1000ms;   // whether the web process hangs
constexpr auto kLivesLong = 1s;                              // who dies sooner is started again only after a while,
constexpr std::chrono::milliseconds kPause = 300ms;          // twice as long each time in a row,
constexpr std::chrono::milliseconds kLongestPause = 2400ms;  // up to this

std::string how_it_ended(int status) {
  return WIFSIGNALED(status)
             ? "was ended by signal " + std::to_string(WTERMSIG(status)) + " (" + ::strsignal(WTERMSIG(status)) + ")"
             : "ended with code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

void WebKeeper::settle(std::optional<Error> error) {
  {
    const std::lock_guard lock(mutex_);
    if (is_settled_) {
      return;
    }
    is_settled_ = true;
    error_ = std::move(error);
  }
  settled_.notify_all();
}

void WebKeeper::run() {
  start_web();
  while (true) {
    std::array<pollfd, 4> events{pollfd{stop_.get(), POLLIN, 0}, pollfd{active_.control.get(), POLLIN, 0},
                                 pollfd{spare_.control.get(), POLLIN, 0}, pollfd{web_.get(), POLLIN, 0}};
    std::chrono::milliseconds wait = source_ ? kLookAtFiles : kLookAtPulse;
    if (start_at_) {
      wait = std::clamp(std::chrono::ceil<std::chrono::milliseconds>(*start_at_ - Clock::now()), 0ms, wait);
    }
    ::poll(events.data(), events.size(), static_cast<int>(wait.count()));
    if (events[0].revents != 0) {
      return;
    }
    if (events[1].revents != 0) {
      const Message message = receive(active_.control.get()).message;
      if (message.kind == Message::Kind::none) {
        replace_starter();
        continue;
      }
      take_from_starter(message);
    }
    if (events[2].revents != 0 && receive(spare_.control.get()).message.kind == Message::Kind::none) {
      replace_spare();
    }
    if (events[3].revents != 0) {
      take_from_web();
    }
    if (start_at_ && Clock::now() >= *start_at_) {
      start_web();
    }
    if (web_ && pulse_.is_silent(shared_->beats, Clock::now())) {
      spdlog::error("the web process hangs for {} s; another one takes its place", Pulse::kPatience);
      start_web();
    }
    if (source_) {
      bundle_is_due_ = source_->refresh() || bundle_is_due_;
    }
    if (bundle_is_due_) {
      send_bundle();
    }
  }
}

void WebKeeper::start_web() {
  start_at_.reset();
  auto lane = boundary::make_lane();
  auto lanes = answering_->next();
  if (!lane || !lanes) {
    told_.log(LogLevel::error, "start",
              "the web process cannot be started: " + (lane ? lanes.error() : lane.error()).message);
    start_later();
    return;
  }
  web_ = std::move(lane->first);
  started_ = Clock::now();
  pulse_.reset(started_);
  send(active_.control.get(), Message(Message::Kind::start), lane->second.get());
  lane->second.reset();
  for (const UniqueFd& each : *lanes) {
    send(web_.get(), Message(Message::Kind::lane), each.get());
  }
  send_bundle();
  for (const web::Listener& listener : listeners_) {
    send(web_.get(), Message(Message::Kind::listener, listener.bound(), listener.is_unix() ? 1 : 0), listener.fd());
  }
  send(web_.get(), Message(Message::Kind::serve));
}

/// Tried again, at the next look, where it cannot be passed on.
void WebKeeper::send_bundle() {
  if (!source_ || !web_) {
    return;
  }
  bundle_is_due_ = true;
  auto text = boundary::SealedText::create();
  Result<void> sealed = text ? Result<void>{} : std::unexpected(text.error());
  if (text) {
    try {
      text->append(source_->bundle().bytes());
      sealed = text->seal();
    } catch (const std::exception& error) {
      sealed = fail(error.what());
    }
  }
  if (!sealed) {
    told_.log(LogLevel::error, "bundle", "the web configuration cannot be passed on: " + sealed.error().message);
    return;
  }
  // Who has stopped reading is not waited for: what hangs is replaced.
  bundle_is_due_ = !send(web_.get(), Message(Message::Kind::bundle), text->descriptor().get(), MSG_DONTWAIT);
}

/// The web process goes with it.
void WebKeeper::replace_starter() {
  set_web_pid(0);
  active_.control.reset();  // whatever it said: now it ends
  if (active_.pid > 0) {
    ::waitpid(active_.pid, nullptr, 0);
  }
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {  // children of those that died
  }
  active_ = std::move(spare_);
  spare_ = {};
  if (!active_.control) {
    spdlog::error("the processes that start the web process were ended: nothing can be served any more");
    settle(Error{"the web process cannot be started"});
    web_.reset();
    lost_();
    return;
  }
  spdlog::warn("the process that starts the web process was ended; another one takes its place");
  fork_spare();
  start_web();
}

void WebKeeper::fork_spare() {
  spare_ = {};
  auto lane = boundary::make_lane();
  if (lane && send(active_.control.get(), Message(Message::Kind::spare), lane->second.get())) {
    spare_.control = std::move(lane->first);
    spare_forked_ = Clock::now();
  }
}

void WebKeeper::replace_spare() {
  if (spare_.pid > 0) {
    ::waitpid(spare_.pid, nullptr, WNOHANG);
  }
  // One that could not be forked, or dies at once, is not asked for again and again.
  if (Clock::now() - spare_forked_ > kLivesLong) {
    fork_spare();
  } else {
    spare_ = {};
  }
}

void WebKeeper::take_from_starter(const Message& message) {
  if (message.kind == Message::Kind::started) {
    set_web_pid(std::max(message.number, 0));
    if (message.number < 0) {
      told_.log(LogLevel::error, "start",
                fmt::format("the web process cannot be started: {}", std::strerror(-message.number)));
    } else {
      ++starts_;
    }
    if (message.other != 0) {
      told_.log(LogLevel::warn, "end", "the web process " + how_it_ended(message.other) + "; it is started again");
    }
  } else if (message.kind == Message::Kind::lacks) {
    std::vector<std::string> lines;
    const std::string text = message.text();
    for (const auto line : text | std::views::split('\n')) {
      if (!line.empty()) {
        lines.emplace_back(line.begin(), line.end());
        spdlog::log(lines.back().starts_with(kOwnUser) ? spdlog::level::info : spdlog::level::warn,
                    "the web process goes without {}", lines.back());
      }
    }
    const std::lock_guard lock(mutex_);
    lacks_ = std::move(lines);
  }
}

/// From when it is reaped on, its number may be somebody else's.
void WebKeeper::set_web_pid(int pid) {
  const std::lock_guard lock(mutex_);
  web_pid_ = pid;
}

void WebKeeper::web_is_gone() {
  set_web_pid(0);
  web_.reset();
  if (Clock::now() - started_ > kLivesLong) {
    pause_ = 0ms;
    start_web();
  } else {
    start_later();
  }
}

void WebKeeper::start_later() {
  pause_ = std::clamp(2 * pause_, kPause, kLongestPause);
  start_at_ = Clock::now() + pause_;
}

void WebKeeper::take_from_web() {
  const Message message = receive(web_.get()).message;
  switch (message.kind) {
    case Message::Kind::serving:
      settle(std::nullopt);
      break;
    case Message::Kind::failed:
      told_.log(LogLevel::error, "failed", "the web process does not serve: " + message.text());
      settle(Error{message.text()});
      break;
    case Message::Kind::none:
      web_is_gone();
      break;
    default:
      break;
  }
}

}  // namespace tacho::process
