#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/wire.h"

namespace tacho::kernel_test {

/// A child that listens, and serves one connection after the other whenever it is told how many requests it will get.
class Server {
 public:
  static constexpr std::size_t kRequest = 31;
  static constexpr std::size_t kReply = 67;

  /// @param cgroup directory; empty: ours
  explicit Server(const std::string& cgroup, std::uint16_t port = 0);

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] const Child& child() const { return *child_; }
  /// Sends so many requests on a new connection; returns when the server has done all and closed it.
  void ask(int requests) const;
  void finish();

 private:
  std::unique_ptr<Child> child_;
  std::uint16_t port_;
};

/// A server of one connection in a cgroup: tells its port, treats the connection as told, tells when it is done, waits
/// for a word before it closes the connection, tells that, and waits for a last word.
Child server_that(const std::string& cgroup, const std::function<void(const UniqueFd&, Line&)>& treat);
/// What such a server does with its connection.
void serve_one(UniqueFd connection, const std::function<void(const UniqueFd&, Line&)>& treat, Line& parent);
/// Gives it the first word; returns when the connection is closed.
void close_connection(Child& server);
/// Gives it the last word, and waits for its end.
void finish(Child& server);

/// A connection to a child that tells its port.
UniqueFd connect_to(const Child& server);

/// What a child does that is told how many requests come next on a new connection, until it hears 0.
void serve_as_told(const UniqueFd& listener, Line& parent);

/// This program under another name: `argument` makes main() serve as serve_as_told() instead of testing. Gone at the
/// end.
class OtherName {
 public:
  OtherName();
  OtherName(const OtherName&) = delete;
  OtherName& operator=(const OtherName&) = delete;
  ~OtherName();

  [[nodiscard]] const std::string& path() const { return path_; }
  /// In a child: becomes that program, which serves on `listener` and talks through `parent`. Does not return.
  [[noreturn]] void run(const UniqueFd& listener, const Line& parent) const;

 private:
  std::string path_;
};

/// The other side of OtherName::run; called by main(). @return exit status
int serve_under_other_name(const std::vector<std::string>& arguments);

}  // namespace tacho::kernel_test
