#include "client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <system_error>

namespace tacho::web::test {
namespace {

/// Catch's macros are for one thread: clients may be in several.
void demand(bool done, const std::string& what) {
  if (!done) {
    throw std::system_error(errno, std::generic_category(), what);
  }
}

struct Peer {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

template <class T>
Peer pack(const T& address) {
  Peer peer{.size = sizeof(T)};
  std::memcpy(&peer.storage, &address, sizeof(T));
  return peer;
}

Peer parse(const std::string& address) {
  if (address.starts_with("unix:")) {
    const std::string path = address.substr(5);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(&name.sun_path, path.data(), path.size());
    if (path.starts_with('@')) {
      name.sun_path[0] = '\0';
      Peer peer = pack(name);
      peer.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
      return peer;
    }
    return pack(name);
  }
  const std::size_t colon = address.rfind(':');
  const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1)));
  if (address.starts_with('[')) {
    sockaddr_in6 name{};
    name.sin6_family = AF_INET6;
    name.sin6_port = htons(port);
    demand(::inet_pton(AF_INET6, address.substr(1, colon - 2).c_str(), &name.sin6_addr) == 1, address);
    return pack(name);
  }
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  demand(::inet_pton(AF_INET, address.substr(0, colon).c_str(), &name.sin_addr) == 1, address);
  return pack(name);
}

}  // namespace

Reply Reply::parse(const std::string& bytes) {
  const std::size_t end = bytes.find("\r\n\r\n");
  if (!bytes.starts_with("HTTP/1.1 ") || end == std::string::npos) {
    return {};
  }
  return {.status = std::stoi(bytes.substr(9, 3)), .head = bytes.substr(0, end + 2), .body = bytes.substr(end + 4)};
}

std::optional<std::string> Reply::header(const std::string& name) const {
  const std::string start = "\r\n" + name + ": ";
  const std::size_t found = head.find(start);
  if (found == std::string::npos) {
    return std::nullopt;
  }
  const std::size_t value = found + start.size();
  return head.substr(value, head.find("\r\n", value) - value);
}

Client::Client(const std::string& address, int receive_buffer, const std::string& from) {
  const Peer peer = parse(address);
  fd_ = UniqueFd(::socket(peer.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  demand(static_cast<bool>(fd_), "a socket");
  if (receive_buffer > 0) {  // before connect: it decides the window that is offered
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
  }
  if (!from.empty()) {
    const Peer own = parse(from + ":0");
    demand(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&own.storage), own.size) == 0, "binding to " + from);
  }
  const timeval limit{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  const auto* const raw = reinterpret_cast<const sockaddr*>(&peer.storage);
  demand(::connect(fd_.get(), raw, peer.size) == 0, "connecting to " + address);
}

bool Client::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

void Client::finish() const {
  ::shutdown(fd_.get(), SHUT_WR);
}

std::string Client::read_some(std::size_t size) const {
  std::string chunk(size, '\0');
  const ssize_t count = ::recv(fd_.get(), chunk.data(), chunk.size(), 0);
  const bool ended = count >= 0 || errno == ECONNRESET;
  demand(ended, "ten seconds have passed");
  chunk.resize(static_cast<std::size_t>(std::max(count, ssize_t{0})));
  return chunk;
}

std::string Client::read_all() const {
  std::string all;
  for (std::string chunk = read_some(65536); !chunk.empty(); chunk = read_some(65536)) {
    all += chunk;
  }
  return all;
}

std::string loopback(const std::string& bound) {
  return "127.0.0.1" + bound.substr(bound.rfind(':'));
}

Reply round_trip(const std::string& address, std::string_view bytes) {
  const Client client(address);
  client.send(bytes);
  return Reply::parse(client.read_all());
}

std::string get_request(const std::string& path, const std::string& headers) {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
}

Reply get(const std::string& address, const std::string& path, const std::string& headers) {
  return round_trip(address, get_request(path, headers));
}

bool prompt(const std::function<bool()>& scrape) {
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    if (scrape() && since(start) < std::chrono::seconds(1)) {
      return true;
    }
  }
  return false;
}

std::chrono::milliseconds since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
}

}  // namespace tacho::web::test
