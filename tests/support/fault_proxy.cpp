// A bad network between a client and a server: every piece of data, in both directions, comes later, a share of them
// much later, as if its segment had been lost and sent again after the retransmission time-out. In order within a
// connection.
//
//     fault_proxy SERVER DELAY_MS LATE_MS LATE_SHARE SEED
//
// Prints "listening ADDRESS"; ends on SIGTERM. (No CLI11: in a program this small g++ 12 sees a null pointer in it.)
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "support/open_loop/faulty_network.h"

namespace {

using tacho::Result;

Result<void> serve(const std::vector<std::string>& words) {
  namespace support = tacho::support;
  if (words.size() != 5) {
    return tacho::fail("usage: fault_proxy SERVER DELAY_MS LATE_MS LATE_SHARE SEED");
  }
  const auto server = support::parse_address(words[0]);
  const auto here = support::parse_address("127.0.0.1:0");
  if (!server || !here) {
    return std::unexpected(server ? here.error() : server.error());
  }
  auto listener = support::listen_on(*here);
  if (!listener) {
    return std::unexpected(listener.error());
  }
  const auto name = support::bound_name(listener->get());
  if (!name) {
    return std::unexpected(name.error());
  }
  std::cout << "listening " << *name << '\n' << std::flush;
  const support::Faults faults{.delay = std::chrono::milliseconds(std::stoi(words[1])),
                               .late = std::chrono::milliseconds(std::stoi(words[2])),
                               .share = std::stod(words[3])};
  return support::FaultyNetwork(std::move(*listener), *server, faults, std::stoull(words[4])).serve();
}

}  // namespace

int main(int argc, char** argv) {
  const auto served = serve(std::vector<std::string>(argv + 1, argv + argc));
  std::cerr << "fault_proxy: " << served.error().message << '\n';
  return EXIT_FAILURE;
}
