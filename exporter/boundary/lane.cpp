#include "boundary/lane.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tacho::boundary {
namespace {

template <class Object>
std::span<const std::byte> bytes_of(const Object& object) {
  return std::as_bytes(std::span(&object, 1));
}
template <class Object>
std::span<std::byte> bytes_into(Object& object) {
  return std::as_writable_bytes(std::span(&object, 1));
}

constexpr std::size_t kMaxDescriptors = 8;  // whoever sends more loses them

UniqueFd take_descriptor(msghdr& message) {
  UniqueFd first;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
      continue;
    }
    for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= part->cmsg_len; at += sizeof(int)) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + at, sizeof(descriptor));
      UniqueFd owned(descriptor);
      if (!first) {
        first = std::move(owned);
      }
    }
  }
  return first;
}

}  // namespace

Result<std::pair<UniqueFd, UniqueFd>> make_lane() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return fail_errno("cannot make a socket pair");
  }
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

Result<void> limit_unread(int lane) {
  const int least = 0;  // the kernel makes its smallest of it, room for about five
  return ::setsockopt(lane, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)) == 0
             ? Result<void>{}
             : fail_errno("cannot limit what waits in a socket pair");
}

bool send_message(int lane, std::span<const std::byte> bytes, int descriptor, int flags) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  iovec part{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};  // NOLINT(*-const-cast)
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof(descriptor));
  }
  ssize_t sent = -1;
  do {
    // The web process, which passes on no descriptor, may only use the simpler call.
    sent = descriptor >= 0 ? ::sendmsg(lane, &message, MSG_NOSIGNAL | flags)
                           : ::send(lane, bytes.data(), bytes.size(), MSG_NOSIGNAL | flags);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

Received receive_message(int lane, std::span<std::byte> into) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxDescriptors * sizeof(int))> control{};
  iovec part{.iov_base = into.data(), .iov_len = into.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t count = -1;
  do {
    count = ::recvmsg(lane, &message, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) {
    return {};
  }
  return {.size = static_cast<std::size_t>(count), .descriptor = take_descriptor(message)};
}

void serve_lane(int lane, const AnswerFunction& answer) {
  Question question;
  while (const std::size_t size = receive_message(lane, bytes_into(question)).size) {
    if (size != sizeof(question)) {
      question = {.kind = static_cast<Kind>(kKinds)};  // none
    }
    const SealedAnswer made = answer(question);
    if (send_message(lane, bytes_of(made.status), made.text.descriptor().get())) {
      continue;
    }
    // The kernel may have no room for a descriptor that is under way.
    const Status failed = Status::failed;
    if (!made.text.descriptor() || !send_message(lane, bytes_of(failed))) {
      return;  // what it had asked besides is of no use to anybody
    }
  }
}

/// A lane of one's own.
class FarCollector::Lease {
 public:
  Lease(FarCollector& collector, bool page) : collector_(collector) {
    std::unique_lock lock(collector.mutex_);
    const std::size_t begin = page ? 0 : 1;
    const std::size_t end = page ? 1 : collector.lanes_.size();
    collector.freed_.wait(lock, [&] {
      for (lane_ = begin; lane_ < end && collector.taken_[lane_]; ++lane_) {
      }
      return lane_ < end;
    });
    collector.taken_[lane_] = true;
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() {
    {
      const std::lock_guard lock(collector_.mutex_);
      collector_.taken_[lane_] = false;
    }
    collector_.freed_.notify_all();
  }

  [[nodiscard]] int lane() const { return collector_.lanes_[lane_].get(); }

 private:
  FarCollector& collector_;
  std::size_t lane_ = 0;
};

FarCollector::FarCollector(std::vector<UniqueFd> lanes) : lanes_(std::move(lanes)), taken_(lanes_.size()) {}

Result<Answer> FarCollector::ask(const Question& question) {
  const Lease lease(*this, is_page(question.kind));
  if (!send_message(lease.lane(), bytes_of(question))) {
    ended_ = true;
    return fail("the collector cannot be asked");
  }
  Answer answer;
  const Received received = receive_message(lease.lane(), bytes_into(answer.status));
  if (received.size != sizeof(answer.status)) {
    ended_ = true;
    return fail("the collector has ended");
  }
  // Without a free descriptor the kernel passes on the message alone.
  if (answer.status == Status::done && question.kind != Kind::reload && !received.descriptor) {
    return fail("an answer came without its text: no descriptor is free", EMFILE);
  }
  if (received.descriptor) {
    auto text = MappedText::map(received.descriptor);
    if (!text) {
      return std::unexpected(text.error());
    }
    answer.text = std::move(*text);
  }
  return answer;
}

}  // namespace tacho::boundary
