#include "process/web_keeper.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <utility>

#include "web/server.h"

namespace tacho::process {
namespace {

using namespace std::chrono_literals;

constexpr auto kTimeToServe = 20s;     // from its start on, once
constexpr auto kTimeToEnd = 650ms;     // for answers that go out: web itself takes 500 ms at most
constexpr auto kTimeToVanish = 100ms;  // of processes that have nothing left to do

bool readable(int descriptor, int timeout_ms) {
  pollfd news{.fd = descriptor, .events = POLLIN, .revents = 0};
  return ::poll(&news, 1, timeout_ms) > 0;
}

}  // namespace

Result<std::unique_ptr<WebKeeper>> WebKeeper::prepare(Options options) {
  std::unique_ptr<WebKeeper> keeper(new WebKeeper);
  // A spare starter is another one's child: it stays among ours when that dies.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (!options.web_config_file.empty()) {
    auto source = web::BundleSource::open(options.web_config_file);
    if (!source) {
      return std::unexpected(source.error());
    }
    keeper->source_ = std::move(*source);
  }
  auto listeners = web::open_listeners(options.listen_addresses);
  if (!listeners) {
    return std::unexpected(listeners.error());
  }
  keeper->listeners_ = std::move(*listeners);
  auto shared = SharedState::create();
  if (!shared) {
    return std::unexpected(shared.error());
  }
  keeper->shared_ = *shared;
  keeper->stop_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!keeper->stop_) {
    return fail_errno("eventfd");
  }
  if (auto done = keeper->fork_starters(std::move(options)); !done) {
    return std::unexpected(done.error());
  }
  return keeper;
}

Result<void> WebKeeper::fork_starters(Options options) {
  WebSide side{.telemetry_path = std::move(options.telemetry_path),
               .lifecycle = options.lifecycle,
               .web_config_file = std::move(options.web_config_file),
               .own_names = web::OwnNames::of_this_machine(),
               .shared = shared_,
               .more_routes = std::move(options.more_routes)};
  std::vector<int> others{stop_.get()};
  for (const web::Listener& listener : listeners_) {
    others.push_back(listener.fd());
  }
  for (Starter* starter : {&active_, &spare_}) {
    auto forked = fork_starter(side, others);
    if (!forked) {
      return std::unexpected(forked.error());
    }
    *starter = std::move(*forked);
    others.push_back(starter->control.get());
  }
  return {};
}

Result<void> WebKeeper::serve(boundary::AnswerFunction answer, std::function<void()> lost) {
  lost_ = std::move(lost);
  answering_ = std::make_unique<Answering>();
  answering_->start(std::move(answer));
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "tacho-keeper");
    run();
  });
  std::unique_lock lock(mutex_);
  if (!settled_.wait_for(lock, kTimeToServe, [this] { return is_settled_; })) {
    return fail("the web process does not begin to serve");
  }
  return error_ ? Result<void>(std::unexpected(*error_)) : Result<void>{};
}

std::vector<std::string> WebKeeper::addresses() const {
  std::vector<std::string> list;
  list.reserve(listeners_.size());
  for (const web::Listener& listener : listeners_) {
    list.push_back(listener.bound());
  }
  return list;
}

std::optional<Rights> WebKeeper::web_rights() const {
  const std::lock_guard lock(mutex_);
  auto rights = web_pid_ > 0 ? web_rights_.read(web_pid_) : Result<Rights>(fail("there is none"));
  if (!rights) {
    return std::nullopt;
  }
  rights->lacks = lacks_;
  return *rights;
}

/// Its ports first; then it may let answers go out.
void WebKeeper::end_web() {
  for (web::Listener& listener : listeners_) {
    listener.close();
  }
  if (!web_) {
    return;
  }
  ::shutdown(web_.get(), SHUT_WR);
  const auto until = Clock::now() + kTimeToEnd;
  while (Clock::now() < until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (readable(web_.get(), static_cast<int>(left.count())) &&
        receive(web_.get()).message.kind == Message::Kind::none) {
      break;
    }
  }
  web_.reset();
}

WebKeeper::~WebKeeper() {
  ::eventfd_write(stop_.get(), 1);
  if (thread_.joinable()) {
    thread_.join();
  }
  end_web();
  answering_.reset();
  for (Starter* starter : {&active_, &spare_}) {
    if (starter->control) {
      send(starter->control.get(), Message(Message::Kind::end));
    }
    starter->control.reset();
  }
  const auto until = Clock::now() + kTimeToVanish;
  for (const Starter* starter : {&active_, &spare_}) {
    while (starter->pid > 0 && ::waitpid(starter->pid, nullptr, WNOHANG) == 0 && Clock::now() < until) {
      std::this_thread::sleep_for(1ms);
    }
  }
}

}  // namespace tacho::process
