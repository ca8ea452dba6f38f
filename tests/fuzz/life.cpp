#include "fuzz/life.h"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace tacho::fuzz {
namespace {

constexpr std::array<std::string_view, 21> kActs{
    "open",        "accept",      "client_send",  "client_read",  "server_send",  "server_read",  "server_wait",
    "client_shut", "server_shut", "client_close", "server_close", "client_reset", "server_reset", "pass",
    "pause",       "reload",      "unwatch",      "watch",        "restart",      "refuse",       "forget"};
constexpr std::array<std::string_view, 21> kHows{
    "-",        "tcp",  "tcp6",    "local", "udp",  "udp6",  "letter",  "send", "write",   "sendmsg", "writev",
    "sendfile", "more", "several", "recv",  "read", "readv", "recvmsg", "peek", "sibling", "stranger"};
constexpr std::array<std::string_view, 11> kContents{"text",     "hello",   "keys",  "cipher", "goodbye", "data",
                                                     "finished", "parting", "proxy", "quic",   "welcome"};

template <class Enum, std::size_t N>
Enum find(const std::array<std::string_view, N>& names, const std::string& word) {
  const auto found = std::ranges::find(names, word);
  if (found == names.end()) {
    throw std::invalid_argument("there is no '" + word + "'");
  }
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view name_of(Act act) {
  return kActs.at(static_cast<std::size_t>(act));
}

std::string_view name_of(How how) {
  return kHows.at(static_cast<std::size_t>(how));
}

std::string_view name_of(Content content) {
  return kContents.at(static_cast<std::size_t>(content));
}

std::string to_text(const Life& life) {
  std::ostringstream out;
  for (const Step& step : life) {
    out << name_of(step.act) << ' ' << step.connection << ' ' << step.bytes << ' ' << name_of(step.how) << ' '
        << name_of(step.content) << '\n';
  }
  return out.str();
}

Life from_text(std::string_view text) {
  Life life;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.empty() || line.starts_with('#')) {
      continue;
    }
    std::istringstream words(line);
    std::string act;
    std::string how;
    std::string content;
    Step step;
    words >> act >> step.connection >> step.bytes >> how >> content;
    try {
      if (!words) {
        throw std::invalid_argument("five words are expected: act, connection, bytes, how, content");
      }
      step.act = find<Act>(kActs, act);
      step.how = find<How>(kHows, how);
      step.content = find<Content>(kContents, content);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("line " + std::to_string(number) + ": " + error.what());
    }
    life.push_back(step);
  }
  return life;
}

}  // namespace tacho::fuzz
