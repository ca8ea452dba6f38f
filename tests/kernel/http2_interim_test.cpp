// Interim responses of HTTP/2 (RFC 9113, 8.1): a reply begins with the first response that is none.

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/frames.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

constexpr auto kWork = 20ms;

/// A response's field section as HPACK has it (RFC 7541): what is in front of its other fields, the status.
const std::string kOk = "\x88";  ///< 200, in the static table
const std::string kPlain =
    "\x48\x03"
    "103";                                            ///< a literal that goes into the dynamic table
const std::string kHuffman = "\x48\x82\x08\x01";      ///< 100 (Appendix B)
const std::string kNotIndexed = "\x08\x82\x08\x19"s;  ///< 103, a literal that does not
const std::string kNeverIndexed =
    "\x1c\x03"
    "102";                                      ///< by the name of ":status: 400"
const std::string kFound = "\x48\x82\x64\x02";  ///< 302
const std::string kDynamic = "\xbe";            ///< what went into the dynamic table last
const std::string kFields(20, 'x');

struct Response {
  std::string name;
  std::vector<std::string> interim;  ///< field sections, each sent in a frame of its own, after some work
  std::string last;                  ///< that of the response
  std::uint8_t flags = kEndHeaders;
  bool has_body = true;
};

std::vector<Response> responses() {
  return {
      {"none", {}, kOk + kFields},
      {"a status in plain letters", {kPlain + kFields}, kOk + kFields},
      {"another", {kHuffman}, kOk + kFields},
      {"the same, by the dynamic table", {kDynamic}, kOk + kFields},
      {"several", {kNotIndexed + kFields, kNotIndexed, kNeverIndexed}, kOk + kFields},
      {"none, a final status as a literal", {}, kFound + kFields},
      {"none, a final status by the dynamic table", {}, kDynamic + kFields},
      {"one, and such a status", {kHuffman}, kDynamic + kFields},
      {"none, such a status without a body", {}, kDynamic + kFields, kEndHeaders | kEndStream, false},
      {"a body of a reply that is empty", {kDynamic}, kOk, kEndHeaders | kEndStream, false},
  };
}

std::string reply(const Response& response, std::uint32_t stream) {
  return frame(kHeaders, stream, response.last, response.flags) + (response.has_body ? frame(kData, stream, 30) : "");
}

}  // namespace

TEST_CASE("an interim response of HTTP/2 does not begin a reply, whatever tells its status") {
  const bool apart = GENERATE(false, true);  // a frame's header has a buffer of its own
  CAPTURE(apart);
  const auto send_frames = [apart](const UniqueFd& to, std::string text) {
    if (!apart) {
      send_bytes(to, text);
      return;
    }
    std::array<iovec, 2> parts{iovec{text.data(), 9}, iovec{text.data() + 9, text.size() - 9}};
    must(::writev(to.get(), parts.data(), parts.size()) == static_cast<ssize_t>(text.size()), "writev");
  };
  const Watched where;
  const auto all = responses();
  const std::string begin = kPreface + frame(kSettings, 0, 0);
  Child server(where.directory(), [&](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    const UniqueFd connection = accept_from(listener);
    receive_once(connection, begin.size());
    std::uint32_t stream = 1;
    for (const Response& response : all) {
      receive_once(connection, 29);
      for (const std::string& interim : response.interim) {
        send_frames(connection, frame(kHeaders, stream, interim));
        std::this_thread::sleep_for(kWork);
      }
      send_frames(connection, reply(response, stream));
      stream += 2;
      parent.tell();
    }
    (void)parent.hear();
  });
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(server.hear()));
  send_bytes(client, begin);
  std::uint32_t stream = 1;
  for (const Response& response : all) {
    CAPTURE(response.name);
    double work = 0;
    const double before = where.sum("tacho_request_duration_seconds");
    send_bytes(client, frame(kHeaders, stream, 20));
    std::size_t left = reply(response, stream).size();
    for (const std::string& interim : response.interim) {
      left += frame(kHeaders, stream, interim).size();
      work += std::chrono::duration<double>(kWork).count();
    }
    receive_once(client, left);
    (void)server.hear();
    stream += 2;
    CHECK(where.value("tacho_requests_total") == (stream - 1) / 2);
    CHECK(where.value("tacho_requests_in_flight") == 0);
    CHECK(where.sum("tacho_request_duration_seconds") - before >= work);
  }
  server.tell();
  server.finish();
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
}
