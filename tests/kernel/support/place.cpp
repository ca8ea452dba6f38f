#include "kernel/support/place.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <string>

#include "kernel/support/cgroup.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

namespace tacho::kernel_test {

Place::Place(Kind kind) : kind_(kind) {
  name_.sun_family = AF_UNIX;
  (playground() + unique_name()).copy(&name_.sun_path[1], sizeof(name_.sun_path) - 1);
}

std::string_view name_of(Place::Kind kind) {
  switch (kind) {
    case Place::Kind::tcp:
      return "TCP";
    case Place::Kind::mptcp:
      return "MPTCP";
    case Place::Kind::unix_stream:
      break;
  }
  return "unix";
}

UniqueFd Place::socket() const {
  const int family = kind_ == Kind::unix_stream ? AF_UNIX : AF_INET;
  return UniqueFd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, kind_ == Kind::mptcp ? IPPROTO_MPTCP : 0));
}

bool Place::available() const {
  if (socket()) {
    return true;
  }
  WARN("skipped: this kernel has no sockets of " << name_of(kind_));
  return false;
}

UniqueFd Place::listen() const {
  UniqueFd listener = socket();
  const sockaddr_in address = loopback(0);
  if (kind_ == Kind::unix_stream) {
    must(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&name_), sizeof(name_)) == 0, "bind");
  } else {
    must(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, "bind");
    *port_ = port_of(listener);
  }
  must(::listen(listener.get(), 16) == 0, "listen");
  return listener;
}

UniqueFd Place::accept(const UniqueFd& listener) const {
  UniqueFd connection(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  must(static_cast<bool>(connection), "accept");
  return connection;
}

UniqueFd Place::connect() const {
  UniqueFd connection = socket();
  const sockaddr_in address = loopback(*port_);
  const int done = kind_ == Kind::unix_stream
                       ? ::connect(connection.get(), reinterpret_cast<const sockaddr*>(&name_), sizeof(name_))
                       : ::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  must(done == 0, "connect");
  return connection;
}

Child server_at(const Place& place, const std::string& cgroup,
                const std::function<void(const UniqueFd&, Line&)>& treat) {
  return Child(cgroup, [&place, &treat](Line& parent) {
    const UniqueFd listener = place.listen();
    parent.tell();
    serve_one(place.accept(listener), treat, parent);
  });
}

UniqueFd connect_to(const Child& server, const Place& place) {
  (void)server.hear();
  return place.connect();
}

}  // namespace tacho::kernel_test
