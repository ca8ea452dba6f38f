#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::fuzz {

/// What happens next. Steps of one connection follow each other; those of several are interleaved.
enum class Act : std::uint8_t {
  open,         ///< the client connects; `how` is the kind of socket
  accept,       ///< the server takes the oldest connection of that kind
  client_send,  ///< `how` says by which calls
  client_read,  ///< up to `bytes` of what has come
  server_send,
  server_read,
  server_wait,  ///< a thread of the server's begins to read where nothing has come yet
  client_shut,  ///< half-close
  server_shut,
  client_close,
  server_close,
  client_reset,  ///< close with SO_LINGER 0
  server_reset,
  pass,     ///< the server's end goes to another process: `how` says where it is
  pause,    ///< of so many milliseconds (`bytes`)
  reload,   ///< tacho reads its configuration again
  unwatch,  ///< a configuration without these targets
  watch,    ///< with them again: what is open is older than they are
  restart,  ///< tacho ends and another one begins: what is open is older than it
  refuse,   ///< a client connects where nobody listens; `how` is the kind of socket
  forget,   ///< nothing happens for so long that datagrams without a reply are messages
};

/// Kinds of sockets, calls and places; which of them an act takes is in kWays.
enum class How : std::uint8_t {
  none,
  tcp,
  tcp6,
  local,  // kinds of stream sockets; local: unix
  udp,
  udp6,
  letter,  // kinds of datagram sockets; letter: unix
  send,
  write,
  sendmsg,
  writev,
  sendfile,
  more,
  several,  // ways to send
  recv,
  read,
  readv,
  recvmsg,
  peek,  // ways to read
  sibling,
  stranger,  // in the server's cgroup, in another watched one
};

/// Whether a list of ways to do something has this one.
bool is_one_of(How how, const auto& list) {
  return std::ranges::find(list, how) != list.end();
}

/// What the bytes look like: text, a TLS record, or the header of a proxy (version 1 of an odd length, else 2), which
/// is the first thing that a client says. Three look alike: application data (a session ticket as well), the client's
/// Finished of TLS 1.3, its close_notify. `welcome` is a ServerHello, `keys` what follows it in a handshake's records,
/// encrypted or not, `goodbye` the alert of TLS 1.2. `quic` is a datagram that begins a connection of QUIC.
enum class Content : std::uint8_t { text, hello, keys, cipher, goodbye, data, finished, parting, proxy, quic, welcome };

struct Step {
  Act act = Act::pause;
  int connection = 0;
  int bytes = 0;
  How how = How::none;
  Content content = Content::text;

  bool operator==(const Step&) const = default;
};

using Life = std::vector<Step>;

/// Whether it happens to all connections; it names none then.
constexpr bool concerns_all(Act act) {
  return act == Act::pause || act == Act::reload || act == Act::unwatch || act == Act::watch || act == Act::restart ||
         act == Act::refuse || act == Act::forget;
}

std::string_view name_of(Act act);
std::string_view name_of(How how);
std::string_view name_of(Content content);

/// One step a line: `client_send 0 120 sendmsg text`.
std::string to_text(const Life& life);

/// The other way round; lines that begin with # say something to people. Throws with the line that is wrong.
Life from_text(std::string_view text);

inline constexpr std::array kStreamKinds{How::tcp, How::tcp6, How::local};
inline constexpr std::array kDatagramKinds{How::udp, How::udp6, How::letter};
inline constexpr std::array kSends{How::send,     How::write, How::sendmsg, How::writev,
                                   How::sendfile, How::more,  How::several};
inline constexpr std::array kReads{How::recv, How::read, How::readv, How::recvmsg, How::peek};

}  // namespace tacho::fuzz
