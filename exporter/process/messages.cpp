#include "process/messages.h"

#include <algorithm>
#include <span>
#include <utility>

#include "boundary/lane.h"

namespace tacho::process {

Message::Message(Kind what, std::string_view text, int value, int second)
    : kind(what), number(value), other(second), size(static_cast<std::uint32_t>(std::min(text.size(), kTextSize))) {
  std::ranges::copy(text.substr(0, size), bytes.begin());
}

std::string Message::text() const {
  return {bytes.data(), std::min<std::size_t>(size, bytes.size())};
}

bool send(int lane, const Message& message, int descriptor, int flags) {
  return boundary::send_message(lane, std::as_bytes(std::span(&message, 1)), descriptor, flags);
}

ReceivedMessage receive(int lane) {
  ReceivedMessage got;
  auto received = boundary::receive_message(lane, std::as_writable_bytes(std::span(&got.message, 1)));
  if (received.size != sizeof(got.message)) {
    return {};
  }
  got.descriptor = std::move(received.descriptor);
  return got;
}

}  // namespace tacho::process
