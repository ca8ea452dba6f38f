#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string_view>

#include "fuzz/expected.h"
#include "fuzz/life.h"
#include "fuzz/numbers.h"
#include "kernel/support/span.h"

/*
 * Datagrams: one bound socket of the server's for each kind, and connected sockets of the client's.
 *
 *  - A datagram that comes from whom the server has not called is a request, open until something is sent to its
 *    sender; each such send answers one. What is sent to a peer that has none open is only an operation.
 *  - Which of several open requests of a peer a reply answers is not known: the sums are the same.
 *  - A client's call is a send that something came back after: no fewer than there were turns, no more than both
 *    datagrams sent and come back.
 *  - What gets no reply for some seconds is a message; a reply that comes after all makes a request of it.
 *  - Those of unix are not told apart by peer: a reply to anybody answers what is open.
 *  - QUIC is told by how its first datagrams begin; it counts as all else.
 *  - What had come, and was not read, when tacho was started anew counts when it is answered, with times that are not
 *    known. An answer to what had been read by then tells nothing of who asked.
 */
namespace tacho::fuzz {

class Datagrams {
 public:
  [[nodiscard]] bool can(const Step& step) const;
  void apply(const Step& step, const Report& report, Expected& server, Expected& client);
  /// Tacho is started anew.
  void restart();
  /// What is open has waited for too long.
  void forget(Expected& server);
  [[nodiscard]] std::optional<Step> last_step() const;
  /// Whether the condition `multiplexed` must be raised: most of a server's requests were QUIC's.
  [[nodiscard]] bool are_told_apart() const { return answered_ > 0 && 2 * quic_answered_ > answered_; }
  /// See Model::excuse().
  [[nodiscard]] std::string_view excuse() const { return excuse_; }

  [[nodiscard]] bool empty() const { return peers_.empty(); }
  /// Whether it is known what will be forgotten.
  [[nodiscard]] bool can_forget() const;
  [[nodiscard]] bool knows(int connection) const { return peers_.contains(connection); }
  [[nodiscard]] How kind(int connection) const { return peers_.at(connection).kind; }
  /// What a read would bring that has room for so much.
  [[nodiscard]] int next_for_server(int connection) const;
  [[nodiscard]] int next_for_client(int connection) const;
  /// Whether nothing else waits where a datagram of this step would arrive.
  [[nodiscard]] bool arrives_alone(const Step& step) const;

 private:
  struct Arrival {
    int connection = 0;
    int bytes = 0;
    kernel_test::Moment when;
    bool surely = false;  ///< it had come by `when.latest`
    bool unseen = false;  ///< it came before tacho was there
  };
  struct Request {
    kernel_test::Moment arrival;
    kernel_test::Moment read;
    bool unseen = false;     ///< it came before tacho was there
    bool forgotten = false;  ///< it was read before that, or beside one that was
  };
  struct Peer {
    How kind = How::udp;
    bool speaks_quic = false;
    bool open = true;
    bool has_asked = false;
    std::deque<Request> requests = {};
    int late = 0;        ///< requests that have become messages
    bool mixed = false;  ///< something was answered while there were such, which may have been one of them
    std::deque<Arrival> answers = {};
    int unanswered_calls = 0;
    bool call_open = false;
    bool older = false;  ///< than tacho, which has seen nothing of the client's socket yet
  };

  void client_read(Peer& peer, const Step& step, const Report& report, Expected& client);
  void server_read(How kind, const Step& step, const Report& report, Expected& server);
  /// Whose request a reply to `peer` answers.
  Peer& answered_by(Peer& peer);
  /// Whether a late reply has to come before the end, so that it is known what is open.
  static bool must_be_answered(const Peer& peer);
  /// Whether a reply to `peer` may answer what has become a message.
  [[nodiscard]] bool has_late(const Peer& peer) const;
  void server_send(Peer& peer, const Step& step, const Report& report, Expected& server);

  std::map<int, Peer> peers_;
  std::string_view excuse_;
  bool chosen_ = false;  ///< something was answered while others were open that it might have been, too
  int answered_ = 0;
  int quic_answered_ = 0;
  std::map<How, std::deque<Arrival>> waiting_;  // at the server
};

}  // namespace tacho::fuzz
