#include "kernel/support/server.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "kernel/support/cgroup.h"

namespace tacho::kernel_test {

void serve_as_told(const UniqueFd& listener, Line& parent) {
  while (const auto requests = static_cast<int>(parent.hear())) {
    serve(accept_from(listener), requests, Server::kRequest, Server::kReply);
    parent.tell();
  }
}

void serve_one(UniqueFd connection, const std::function<void(const UniqueFd&, Line&)>& treat, Line& parent) {
  treat(connection, parent);
  parent.tell();
  (void)parent.hear();
  connection.reset();
  parent.tell();
  (void)parent.hear();
}

Child server_that(const std::string& cgroup, const std::function<void(const UniqueFd&, Line&)>& treat) {
  return Child(cgroup, [&treat](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    serve_one(accept_from(listener), treat, parent);
  });
}

void close_connection(Child& server) {
  server.tell();
  (void)server.hear();
}

void finish(Child& server) {
  server.tell();
  server.finish();
}

UniqueFd connect_to(const Child& server) {
  return connect_tcp(static_cast<std::uint16_t>(server.hear()));
}

Server::Server(const std::string& cgroup, std::uint16_t port)
    : child_(std::make_unique<Child>(cgroup,
                                     [port](Line& parent) {
                                       const UniqueFd listener = listen_tcp(port);
                                       parent.tell(port_of(listener));
                                       serve_as_told(listener, parent);
                                     })),
      port_(static_cast<std::uint16_t>(child_->hear())) {}

void Server::ask(int requests) const {
  const UniqueFd client = connect_tcp(port_);
  child_->tell(static_cast<std::uint64_t>(requests));
  kernel_test::ask(client, requests, kRequest, kReply);
  (void)child_->hear();
}

void Server::finish() {
  child_->tell(0);
  child_->finish();
}

OtherName::OtherName() {
  // Beside the program itself, since a link does not leave its file system.
  const auto self = std::filesystem::read_symlink("/proc/self/exe");
  path_ = self.string() + "-" + std::to_string(::getpid()) + "-" + unique_name();
  std::filesystem::create_hard_link(self, path_);
}

OtherName::~OtherName() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

void OtherName::run(const UniqueFd& listener, const Line& parent) const {
  std::array<std::string, 5> words{path_, "--serve", std::to_string(listener.get()), std::to_string(parent.in()),
                                   std::to_string(parent.out())};
  for (const int descriptor : {listener.get(), parent.in(), parent.out()}) {
    must(::fcntl(descriptor, F_SETFD, 0) == 0, "F_SETFD");
  }
  std::array<char*, 6> arguments{};
  for (std::size_t i = 0; i < words.size(); ++i) {
    arguments.at(i) = words.at(i).data();
  }
  ::execv(path_.c_str(), arguments.data());
  must(false, "execv");
  std::abort();
}

int serve_under_other_name(const std::vector<std::string>& arguments) {
  const UniqueFd listener(std::stoi(arguments.at(0)));
  Line parent(std::stoi(arguments.at(1)), std::stoi(arguments.at(2)));
  parent.tell();
  serve_as_told(listener, parent);
  return 0;
}

}  // namespace tacho::kernel_test
