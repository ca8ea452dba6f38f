// What comes over a connection before anybody is asked for a password: the bytes of a request head, in pieces.
#include "web/request_head.h"

#include <algorithm>
#include <set>
#include <string>

#include "fuzzer.h"

using namespace tacho::web;
using tacho::fuzz::require;

namespace {

using State = HeadCollector::State;

/// What a collector makes of bytes that come in pieces of this size.
State collect(HeadCollector& collector, std::string_view bytes, std::size_t piece) {
  State state = State::incomplete;
  while (state == State::incomplete && !bytes.empty()) {
    state = collector.add(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  return state;
}

bool is_visible(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
}

void check(const Request& request) {
  require(!request.method.empty() && is_visible(request.method), "a method is visible");
  require(request.path.starts_with('/') || request.path == "*", "a path begins with a slash");
  require(!request.path.contains('?') && is_visible(request.path) && is_visible(request.query), "a target is visible");
  require(request.headers.size() <= kMaxHeaders, "headers are bounded");
  for (const auto& [name, value] : request.headers) {
    require(!name.empty() && is_visible(name) && name.find_first_of(" :\t") == std::string::npos, "a name is a token");
    require(is_visible(value) && !value.ends_with(' '), "a value is visible");
  }
  require(!request.header("Transfer-Encoding"), "who announces a body is refused");
  const auto length = request.header("Content-Length");
  require(!length || length->find_first_not_of('0') == std::string::npos, "who announces a body is refused");
  require(!request.authenticated && !request.local, "a head says nothing of who asks");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = tacho::fuzz::text_of(data, size);
  HeadCollector at_once;
  HeadCollector in_drips;
  const State state = collect(at_once, bytes, std::max<std::size_t>(bytes.size(), 1));
  require(state == collect(in_drips, bytes, 1), "pieces make no difference");
  if (state != State::complete) {
    return 0;
  }
  const std::string head = at_once.take();
  require(head == in_drips.take(), "pieces make no difference");
  require(head.size() <= kMaxRequestHead, "a head is bounded");
  const auto parsed = parse_request(head);
  if (const int* const status = std::get_if<int>(&parsed)) {
    static const std::set<int> kRefusals{400, 411, 413, 431, 505};
    require(kRefusals.contains(*status), "a refusal is one of HTTP's");
  } else {
    check(std::get<Request>(parsed));
  }
  return 0;
}
