#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "fuzz/datagrams.h"
#include "fuzz/expected.h"
#include "fuzz/life.h"
#include "kernel/support/span.h"

/*
 * What must be counted, from README, design §5 and issue 13 alone; nothing of bpf/ is looked at.
 *
 *  - A request is the first send on a server's socket after a receive that brought data. Peeks, reads that bring
 *    nothing and calls that fail are no operations.
 *  - Its time begins at the arrival of the last data that the server had to wait for: data that came when all before it
 *    had been read. Where a turn brings none such (the data waited behind that of an earlier turn), it begins between
 *    the arrival of the oldest of them and their read. It ends with the first send.
 *  - Queue: from that beginning to the read of that data. Service: from the last read to the first send. Receive: from
 *    the arrival of the first data to the beginning.
 *  - What was read, and was followed by more after a pause of half a second and by no reply, is a one-way message.
 *  - What is read when nothing can be sent any more (after the server's own half-close, after a reset) opens nothing.
 *  - A turn that is open when the connection ends is unanswered; those of unix sockets, whose end no hook tells, are
 *    counted when they are answered, or not at all.
 *  - What only carries a TLS handshake on is no request, and is counted on its own; a goodbye is neither, answered or
 *    not. Both are no calls; but what comes back to a client's Finished may be taken for the answer to one, if that was
 *    sent from several buffers.
 *  - A call of a client is answered by the first receive after a send: from its last send to the arrival of what came
 *    back.
 *  - The header of a proxy belongs to the turn that it begins, of whatever kind that is; alone it is none.
 *  - A connection that nobody accepts is none.
 *  - A tacho that is started anew counts from there on, as after a gap.
 *  - Connections are TCP's; one that is passed on to another target is closed here and opened there when it is used
 *    there for the first time.
 *  - While the targets are not watched nothing counts. What is read afterwards is a request when it is answered, also
 * on connections that are older; whether what had been read before is one, or a connection, is not said. Nor is it
 *    whether a Finished of TLS 1.3 is one, which looks like data, if the ServerHello was sent before.
 *  - In the end nothing is in flight and no connection is active.
 */
namespace tacho::fuzz {

enum class Place : std::uint8_t { server, sibling, stranger, client };
inline constexpr std::size_t kPlaces = 4;

/// Targets: cgroups that are watched.
enum class Target : std::uint8_t { server, stranger, client };
inline constexpr std::array kTargets{Target::server, Target::stranger, Target::client};

Target target_of(Place place);
/// Where a connection is passed to.
Place place_of(How how);
std::string_view name_of(Target target);

class Model {
 public:
  /// Whether the step makes sense now; one that does not is left out.
  [[nodiscard]] bool can(const Step& step) const;
  void apply(const Step& step, const Report& report);
  /// A step that brings the life nearer to its end; nothing when everything is closed.
  [[nodiscard]] std::optional<Step> last_steps() const;

  /// Why what tacho counts today is known to differ in this life (issue 13); empty: it is not.
  [[nodiscard]] std::string_view excuse() const { return excuse_.empty() ? datagrams_.excuse() : excuse_; }

  [[nodiscard]] const Expected& of(Target target) const { return expected_.at(static_cast<std::size_t>(target)); }

  // What the driver has to know to await the effect of a step.
  [[nodiscard]] Place server_place(int connection) const { return at(connection).server.place; }
  [[nodiscard]] std::size_t unread_by_server(int connection) const { return at(connection).server.unread(); }
  [[nodiscard]] std::size_t unread_by_client(int connection) const { return at(connection).client.unread(); }
  [[nodiscard]] bool server_holds(int connection) const {
    return at(connection).accepted && at(connection).server.open;
  }
  [[nodiscard]] bool client_holds(int connection) const { return at(connection).client.open; }
  [[nodiscard]] bool reader_waits(int connection) const { return at(connection).reader; }
  [[nodiscard]] bool server_was_reset(int connection) const { return at(connection).server.reset; }
  [[nodiscard]] bool client_was_reset(int connection) const { return at(connection).client.reset; }
  [[nodiscard]] How kind(int connection) const { return at(connection).kind; }
  /// Those of datagrams know by themselves what there is to know.
  [[nodiscard]] const Datagrams& datagrams() const { return datagrams_; }

 private:
  struct Arrival {
    std::size_t bytes = 0;
    kernel_test::Moment when;
    Content content = Content::text;
    bool waited_for = false;
    bool begun = false;   ///< part of it has been read
    bool unseen = false;  ///< it may have come in a gap
  };
  struct End {
    Place place = Place::server;
    bool open = true;
    bool shut = false;   ///< sends nothing more
    bool ended = false;  ///< the other side sends nothing more
    bool reset = false;
    std::deque<Arrival> queue = {};
    [[nodiscard]] std::size_t unread() const;
    [[nodiscard]] bool begins_with_proxy() const {
      return !queue.empty() && queue.front().content == Content::proxy && !queue.front().begun;
    }
    [[nodiscard]] bool can_send() const { return open && !shut && !reset; }
  };
  struct Turn {
    kernel_test::Moment begin;   ///< of the request's time
    kernel_test::Moment oldest;  ///< arrival of its first data
    kernel_test::Moment begun;   ///< read of the data whose arrival is `begin`
    kernel_test::Moment last_read;
    bool is_request = false;  ///< some of it is neither handshake nor goodbye
    bool brings_goodbye = false;
    bool brings_handshake = false;
    bool unsure = false;  ///< all of it was read before the last gap's end
    bool loose = false;   ///< it is a request, whose beginning may not be known
    bool blind = false;   ///< whether it is the last flight of a handshake is not known
    void bring(Content content);
  };
  struct Connection {
    How kind = How::tcp;
    int number = 0;  ///< in the order of opening
    bool accepted = false;
    bool reader = false;  ///< a thread of the server's waits in a read
    int reader_bytes = 0;
    End server;
    End client{.place = Place::client};
    Target counted = Target::server;  ///< as whose connection
    std::optional<Turn> turn;
    std::optional<kernel_test::Moment> call;  ///< its last send
    Content asked = Content::text;            ///< what that was
    bool asked_in_parts = false;              ///< its bytes were in several buffers
    bool knows_keys = false;                  ///< the client has read the server's part of a handshake, while watched
    bool asked_unknown = false;               ///< the call began with a Finished that nobody can tell from data
    kernel_test::Moment born;                 ///< before anything that happened to it
    bool torn = false;                        ///< something open at the server's end may be known from before a gap
    bool torn_call = false;                   ///< the same at the client's
    bool queued = false;                      ///< a gap ended before it was accepted: it is known when it is used
    bool has_asked = false;                   ///< the client has sent something
    bool greets = false;                      ///< a ClientHello was sent that no ServerHello answers yet
    bool welcomes = false;                    ///< a ServerHello was sent, nothing was read since
    bool blind = false;                       ///< that was before a gap, or in it: what comes next may be hidden
    [[nodiscard]] bool is_tcp() const { return kind != How::local; }
  };

  [[nodiscard]] const Connection& at(int connection) const { return connections_.at(connection); }
  Expected& numbers(Target target) { return watched_ ? expected_.at(static_cast<std::size_t>(target)) : unseen_; }
  Expected& numbers(const End& end) { return numbers(target_of(end.place)); }

  void open(const Step& step);
  void count_operation(const End& end, bool sends, const Step& step, std::int64_t bytes);
  void arrive(End& end, const Step& step, const Report& report);
  void send(Connection& connection, bool by_server, const Step& step, const Report& report);
  void read(Connection& connection, bool by_server, const Step& step, const Report& report);
  void read_by_server(Connection& connection, const std::vector<Arrival>& taken, const Report& report);
  void use_by_server(Connection& connection);
  void close(Connection& connection, bool by_server, bool abort);
  void reset(Connection& connection, End& end);
  void end_turn_unanswered(Connection& connection);
  // Of gaps in being watched (model_gap.cpp).
  void set_watched(bool watched);
  void may_have_connections(const Connection& connection);
  static void forget_times(End& end);
  void doubt(const Connection& connection);
  void answer_loosely(Connection& connection, const Report& report);

  std::map<int, Connection> connections_;
  Datagrams datagrams_;
  int opened_ = 0;
  bool watched_ = true;
  Expected unseen_;  ///< what happens in a gap
  std::string_view excuse_;
  std::array<Expected, kTargets.size()> expected_;
};

}  // namespace tacho::fuzz
