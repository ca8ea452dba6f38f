#include "web/gate.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <tuple>
#include <utility>

#include "web/pending.h"

namespace tacho::web {
namespace {

using namespace std::chrono_literals;

constexpr int kAcceptBurst = 64;          // then the connections at hand get their turn
constexpr std::size_t kEvents = 1024;     // all that there may be: each source finds its turn among them
constexpr int kUnsent = 64 << 10;         // kept by the kernel beyond what a client's side lets come
constexpr int kLocalBuffer = 64 << 10;    // the same of a unix socket
constexpr int kReceiveBuffer = 32 << 10;  // the same of what we do not read yet
constexpr int kFree = 16;                 // descriptors: answers of the collector come with one each
constexpr auto kLookEvery = 50ms;         // at the clocks of all connections
constexpr auto kLinger = 1s;              // for what a client still sends after its answer
constexpr std::uint64_t kListenerBit = std::uint64_t{1} << 63U;  // what epoll tells is a descriptor, not an id
constexpr unsigned kAllEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;

bool watch(int epoll, int fd, unsigned events, std::uint64_t data) {
  epoll_event event{.events = events, .data = {.u64 = data}};
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/// Of any descriptor: there may be no file to open.
/// @param from the least number that it may get
UniqueFd duplicate(const UniqueFd& descriptor, int from = 0) {
  return UniqueFd(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, from));
}

}  // namespace

Result<std::unique_ptr<Gate>> Gate::open(std::vector<Listener> listeners, Site& site, LiveConfig& config,
                                         Liveness& liveness, const GateLimits& limits, GateCounters* counters,
                                         RegularsMemory* regulars) {
  std::unique_ptr<Gate> gate(new Gate(std::move(listeners), site, config, liveness, limits, counters, regulars));
  if (auto prepared = gate->prepare(); !prepared) {
    return std::unexpected(prepared.error());
  }
  gate->thread_ = std::thread([raw = gate.get()] {
    ::pthread_setname_np(::pthread_self(), "tacho-gate");
    raw->run();
  });
  return gate;
}

Gate::Gate(std::vector<Listener> listeners, Site& site, LiveConfig& config, Liveness& liveness,
           const GateLimits& limits, GateCounters* counters, RegularsMemory* regulars)
    : listeners_(std::move(listeners)),
      site_(site),
      config_(config),
      liveness_(liveness),
      limits_(limits),
      regulars_(regulars),
      counters_(counters != nullptr ? *counters : own_counters_) {
  counters_.open = 0;
}

Gate::~Gate() {
  stop_ = true;
  ::eventfd_write(wake_.get(), 1);
  if (thread_.joinable()) {
    thread_.join();
  }
}

Result<void> Gate::prepare() {
  for (auto [workers, name, threads] :
       {std::tuple(&handlers_, "tacho-handler", limits_.threads), std::tuple(&page_maker_, "tacho-page", 1U),
        std::tuple(&password_checker_, "tacho-password", 1U)}) {
    auto created = Workers::create(name, threads);
    if (!created) {
      return std::unexpected(created.error());
    }
    *workers = std::move(*created);
  }
  epoll_ = UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  wake_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  spare_ = duplicate(wake_);
  bool good = epoll_ && wake_ && spare_;
  const auto add = [&](int fd) {
    good = good && watch(epoll_.get(), fd, EPOLLIN, kListenerBit | static_cast<std::uint64_t>(fd));
  };
  add(wake_.get());
  for (const Workers* workers : {handlers_.get(), page_maker_.get(), password_checker_.get()}) {
    add(workers->event_fd());
  }
  for (const Listener& listener : listeners_) {
    add(listener.fd());
  }
  if (!good) {
    return fail_errno("web server: cannot wait for connections");
  }
  return {};
}

void Gate::run() {
  std::array<epoll_event, kEvents> events{};
  while (true) {
    const bool busy = handshakes_.size() + readings_.size() + sendings_.size() > 0;
    const int timeout = busy ? 0 : exchanges_.empty() && !stop_ ? -1 : static_cast<int>(kLookEvery.count());
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout);
    const auto news = std::span(events).first(static_cast<std::size_t>(std::max(count, 0)));
    for (const epoll_event& event : news) {
      if (Exchange* const exchange = find(event.data.u64); exchange != nullptr && !step(*exchange, event.events)) {
        drop(event.data.u64);
      }
    }
    for (const epoll_event& event : news) {
      const int fd = static_cast<int>(event.data.u64 & ~kListenerBit);
      if ((event.data.u64 & kListenerBit) != 0 &&
          std::ranges::find(listeners_, fd, &Listener::fd) != listeners_.end()) {
        accept_all(fd);
      }
    }
    for (Workers* workers : {handlers_.get(), page_maker_.get(), password_checker_.get()}) {
      workers->collect();
    }
    take_turns(handshakes_, Exchange::Phase::greeting, limits_.handshaking, &Gate::shake_hands);
    take_turns(readings_, Exchange::Phase::reading, limits_.reading, &Gate::read);
    take_turns(sendings_, Exchange::Phase::sending, limits_.sending, &Gate::send_more);
    const auto now = Clock::now();
    if (now >= next_look_) {
      next_look_ = now + kLookEvery;
      look_at_clocks(now);
    }
    make_room_for_answers(now);
    start_work(now);
    if (stop_ && !prepare_to_stop(now)) {
      return;
    }
  }
}

/// Whether there is still something to wait for.
bool Gate::prepare_to_stop(Clock::time_point now) {
  if (!stopping_) {
    stopping_ = true;
    stop_until_ = now + limits_.grace;
    listeners_.clear();
    eventfd_t ignored = 0;
    ::eventfd_read(wake_.get(), &ignored);
    drop_if([](const Exchange& each) { return each.waits_for_request(); }, nullptr);
  }
  if (now >= stop_until_) {
    drop_if([](const Exchange& each) { return each.phase == Exchange::Phase::sending; }, nullptr);
  }
  return std::ranges::any_of(exchanges_,
                             [](const auto& each) { return each.second.phase != Exchange::Phase::closing; });
}

void Gate::accept_all(int listener) {
  for (int i = 0; i < kAcceptBurst; ++i) {
    UniqueFd connection(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection) {
      ++counters_.accepted;
      admit(std::move(connection));
    } else if (!has_pending(listener)) {
      return;  // accept reports a lack of descriptors even then
    } else if ((errno == EMFILE || errno == ENFILE) && !displace([](const Exchange&) { return true; })) {
      // Left in the queue, the connection would wake us for ever: accept it to close it.
      spare_.reset();
      const UniqueFd refused(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
      if (refused) {
        ++counters_.accepted;
        ++counters_.displaced;
      }
      spare_ = duplicate(wake_);
    }
  }
}

void Gate::refresh_config() {
  try {
    if (auto context = config_.refresh()) {
      context_ = std::move(context);
    }
  } catch (const std::exception& error) {
    spdlog::error("web configuration not reloaded: {}", error.what());
  }
}

void Gate::admit(UniqueFd connection) {
  refresh_config();
  // The kernel gives the lowest number that is free, so from this one on all may be.
  const bool some_are_free = static_cast<bool>(duplicate(wake_, connection.get() + kFree));
  if (exchanges_.size() >= limits_.connections || !some_are_free) {
    displace([](const Exchange&) { return true; });
  }
  const int on = 1;
  ::setsockopt(connection.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // a unix socket refuses and needs none
  ::setsockopt(connection.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsent, sizeof(kUnsent));
  ::setsockopt(connection.get(), SOL_SOCKET, SO_RCVBUF, &kReceiveBuffer, sizeof(kReceiveBuffer));
  const int fd = connection.get();
  const Id id = next_id_++;
  Source source = Source::of(fd);
  if (source.address.empty()) {
    ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kLocalBuffer, sizeof(kLocalBuffer));
  }
  Exchange& exchange =
      exchanges_.try_emplace(id, id, std::move(connection), config_.tls() ? context_.get() : nullptr, std::move(source))
          .first->second;
  const auto [companions, is_new] = companions_.try_emplace(exchange.source.key);
  exchange.of_source = &companions->second;
  ++exchange.of_source->connections;
  if (is_new) {
    exchange.of_source->known = regulars_.knows(exchange.source.key);
  }
  counters_.open = exchanges_.size();
  // What should be TLS and has found no memory for it is not served in the clear.
  if (config_.tls() != exchange.stream.tls() || !watch(epoll_.get(), fd, kAllEvents, id)) {
    ++counters_.displaced;
    drop(id);
  } else if (exchange.phase == Exchange::Phase::greeting) {
    make_room_for_handshake(exchange);
  }
}

/// What was written is delivered, and the client had time to say what it has to.
bool Gate::has_closed(const Exchange& exchange, Clock::time_point now) {
  return exchange.phase == Exchange::Phase::closing && exchange.since + kLinger <= now &&
         exchange.stream.undelivered() == 0;
}

/// All is written, and the client takes nothing of what the kernel has of it.
bool Gate::leaves_the_end(const Exchange& exchange, Clock::time_point now) const {
  return exchange.phase == Exchange::Phase::closing && exchange.since + kLinger + limits_.client_timeout <= now;
}

void Gate::look_at_clocks(Clock::time_point now) {
  using Phase = Exchange::Phase;
  drop_if(
      [&](const Exchange& each) {
        return each.waits_for_request() && !each.in_line && each.since + limits_.head_timeout <= now;
      },
      &counters_.timed_out);
  drop_if(
      [&](const Exchange& each) {
        return each.phase == Phase::sending && !each.in_line && each.since + limits_.client_timeout <= now;
      },
      &counters_.cut_off);
  drop_if([&](const Exchange& each) { return has_closed(each, now); }, nullptr);
  drop_if([&](const Exchange& each) { return leaves_the_end(each, now); }, &counters_.cut_off);
  for (auto& [id, exchange] : exchanges_) {
    if (exchange.phase == Phase::closing && exchange.since + kLinger <= now) {
      // Time begins anew with each byte that its side takes.
      if (const std::size_t left = exchange.stream.undelivered(); left != exchange.undelivered) {
        exchange.undelivered = left;
        exchange.since = now - kLinger;
      }
    }
    if (exchange.paused) {
      exchange.paused = false;
      epoll_event event{.events = kAllEvents, .data = {.u64 = id}};
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, exchange.stream.fd(), &event);  // tells at once what came meanwhile
    }
  }
}

Exchange* Gate::find(Id id) {
  const auto found = exchanges_.find(id);
  return found == exchanges_.end() ? nullptr : &found->second;
}

void Gate::drop(Id id) {
  const auto found = exchanges_.find(id);
  if (found->second.owes_answer()) {
    found->second.stream.give_up();
  }
  if (--found->second.of_source->connections == 0) {
    companions_.erase(found->second.source.key);
  }
  counters_.open = exchanges_.size() - 1;
  exchanges_.erase(found);
}

void Gate::drop_if(const Eligible& eligible, std::atomic<std::uint64_t>* counter) {
  for (auto each = exchanges_.begin(); each != exchanges_.end();) {
    const auto [id, exchange] = std::pair(each->first, &each->second);
    ++each;
    if (eligible(*exchange)) {
      if (counter != nullptr) {
        ++*counter;
      }
      drop(id);
    }
  }
}

}  // namespace tacho::web
