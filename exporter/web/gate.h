#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/liveness.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "web/counters.h"
#include "web/exchange.h"
#include "web/fair_queue.h"
#include "web/listener.h"
#include "web/live_config.h"
#include "web/regulars.h"
#include "web/site.h"
#include "web/workers.h"

namespace tacho::web {

/// The limits of the gate; the defaults are the server's.
struct GateLimits {
  std::size_t connections = 512;             ///< at a time
  std::size_t handshakes = 320;              ///< of them, TLS handshakes under way
  std::size_t source_handshakes = 256;       ///< the same from one source
  std::chrono::milliseconds handshaking{4};  ///< before others have their turn
  std::size_t in_line = 64;                  ///< requests that wait for a thread, passwords that wait to be checked
  std::chrono::milliseconds reading{1};      ///< of request heads, before others have their turn
  std::chrono::milliseconds sending{1};      ///< the same of large answers
  std::size_t held_bytes = std::size_t{40} << 20;                    ///< of pages that are still being sent
  std::size_t source_held_bytes = std::size_t{20} << 20;             ///< the same of one source, before its next one
  std::size_t held_answers = std::size_t{16} << 20;                  ///< bytes of other answers, each one client's
  std::chrono::milliseconds page_waits{500};                         ///< for clients that still take the pages before
  std::chrono::milliseconds head_timeout = std::chrono::seconds(5);  ///< from accept until the request head is there
  std::chrono::milliseconds client_timeout = std::chrono::seconds(10);  ///< for which a client may take nothing
  std::chrono::milliseconds patience{250};                              ///< the same where its page is in the way
  std::chrono::milliseconds grace{500};                                 ///< for answers under way when the server ends
  unsigned threads = 4;                                                 ///< that call handlers
};

/// Accepts connections, and does all waiting for clients itself, on one thread: TLS, request heads, answers. A slow
/// client thus costs a descriptor and some memory, never a thread. Handlers run on a few threads, passwords are checked
/// on one, pages are made on one and shared by all clients that asked before. `immediate` routes and refusals are
/// answered at once, whatever those threads do.
///
/// If there is not room for all, sources are treated fairly. Connections are shed from the source that has most of
/// them, the oldest first, in whatever state; a source that was served before may keep a few. In line, also to be read,
/// for handshakes and for each part of a large answer, the sources take turns, oldest first, and those that were served
/// before precede strangers. One source cannot fill the memory for pages; where many do, a page is lost that all who
/// have it take slowly. Data that a client does not take costs little memory, also in the kernel.
class Gate {
 public:
  /// Starts the threads, which take no signals if the caller's are blocked. The other parts must outlive the gate.
  /// @param counters where to count on; none: the gate's own
  /// @param regulars those that a gate before met; none: all are strangers
  static Result<std::unique_ptr<Gate>> open(std::vector<Listener> listeners, Site& site, LiveConfig& config,
                                            Liveness& liveness, const GateLimits& limits = {},
                                            GateCounters* counters = nullptr, RegularsMemory* regulars = nullptr);
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  /// Closes the listeners at once; answers under way are sent for the time of grace; waits for handlers that run.
  ~Gate();

  [[nodiscard]] const GateCounters& counters() const { return counters_; }

 private:
  using Clock = Exchange::Clock;
  using Id = std::uint64_t;
  using Eligible = std::function<bool(const Exchange&)>;
  /// The clients that wait for the same page to be begun.
  struct Batch {
    const Route* route;
    std::string content_type;
    std::vector<Id> ids;
  };
  using BytesOfSources = std::map<std::string, std::size_t>;
  /// What is being sent of one kind: pages, or other answers.
  struct Held {
    std::weak_ptr<const Pieces> body;
    std::size_t size;
  };
  using AllHeld = std::vector<Held>;

  Gate(std::vector<Listener> listeners, Site& site, LiveConfig& config, Liveness& liveness, const GateLimits& limits,
       GateCounters* counters, RegularsMemory* regulars);

  // gate.cpp: which connections are admitted, and for how long
  Result<void> prepare();
  void run();
  [[nodiscard]] static bool has_closed(const Exchange& exchange, Clock::time_point now);
  [[nodiscard]] bool leaves_the_end(const Exchange& exchange, Clock::time_point now) const;
  bool prepare_to_stop(Clock::time_point now);
  void accept_all(int listener);
  void admit(UniqueFd connection);
  void refresh_config();
  void look_at_clocks(Clock::time_point now);
  void drop(Id id);
  void drop_if(const Eligible& eligible, std::atomic<std::uint64_t>* counter);
  [[nodiscard]] Exchange* find(Id id);

  // crowd.cpp: who makes room
  void make_room_for_handshake(const Exchange& latest);
  bool displace(const Eligible& eligible);
  [[nodiscard]] Exchange* find_victim(const Eligible& eligible);
  static void hold(AllHeld& held, const std::shared_ptr<const Pieces>& body);
  [[nodiscard]] static std::size_t bytes_of(AllHeld& held);
  [[nodiscard]] BytesOfSources bytes_of_sources(const AllHeld& held) const;
  void drop_stale(const AllHeld& held, Clock::time_point now, const std::string* of = nullptr);
  bool take_back(const AllHeld& held, const std::string* from = nullptr);
  void make_room_for_answers(Clock::time_point now);

  // exchange.cpp: one exchange; each returns false when it is over
  bool step(Exchange& exchange, unsigned events);
  void wait_to_be_read(Exchange& exchange);
  bool shake_hands(Exchange& exchange);
  void take_turns(FairQueue<Id>& line, Exchange::Phase phase, std::chrono::milliseconds time,
                  bool (Gate::*what)(Exchange&));
  void line_up(FairQueue<Id>& line, Exchange& exchange, bool goes_first);
  Exchange* next_in(FairQueue<Id>& line);
  bool read(Exchange& exchange);
  bool look_again_later(Exchange& exchange);
  bool take_request(Exchange& exchange);
  bool refuse(Exchange& exchange, int status);
  bool answer(Exchange& exchange, Rendered rendered, bool good);
  bool send_more(Exchange& exchange);
  bool write(Exchange& exchange, std::size_t most);
  bool close_softly(Exchange& exchange);
  static bool drain(Exchange& exchange);

  // work.cpp: work that takes time
  bool place(Exchange& exchange, Verdict verdict);
  void queue(FairQueue<Id>& line, Exchange& exchange);
  void start_work(Clock::time_point now);
  void start_handler(Exchange& exchange);
  void start_password(Exchange& exchange);
  void finish(Id id, Rendered rendered, bool good);

  // pages.cpp: pages, each made for many
  void ask_for_page(Exchange& exchange);
  void start_page(Clock::time_point now);
  void make_page(const Batch& batch);
  void make_room_for_page(const Batch& batch, Clock::time_point now);
  std::vector<Id> take_those_with_room(Batch& batch);
  void hand_out(const std::vector<Id>& ids, const Page& page, bool made);

  std::vector<Listener> listeners_;
  Site& site_;
  LiveConfig& config_;
  Liveness& liveness_;
  const GateLimits limits_;
  SslContext context_;
  UniqueFd epoll_;
  UniqueFd wake_;
  UniqueFd spare_;  // closed for a moment to refuse a connection when no descriptor is left
  std::map<Id, Exchange> exchanges_;
  std::unordered_map<std::string, Companions> companions_;  // of sources that have a connection
  Id next_id_ = 1;
  Regulars regulars_;
  FairQueue<Id> handshakes_;  // in line for this thread
  FairQueue<Id> readings_;    // the same, with something to be read
  FairQueue<Id> sendings_;    // the same, with room for more of their answers
  FairQueue<Id> requests_;    // in line for another one
  FairQueue<Id> passwords_;
  std::deque<Batch> batches_;
  AllHeld pages_;
  AllHeld answers_;
  std::unique_ptr<Workers> handlers_;
  std::unique_ptr<Workers> page_maker_;
  std::unique_ptr<Workers> password_checker_;
  Clock::time_point next_look_;
  GateCounters own_counters_;
  GateCounters& counters_;
  std::atomic<bool> stop_ = false;
  bool stopping_ = false;
  Clock::time_point stop_until_;
  std::thread thread_;
};

}  // namespace tacho::web
