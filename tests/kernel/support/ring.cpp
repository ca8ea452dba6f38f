#include "kernel/support/ring.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "kernel/support/wire.h"

namespace tacho::kernel_test {
namespace {

io_uring_sqe transfer(std::uint8_t operation, const UniqueFd& socket, const void* data, std::size_t size) {
  io_uring_sqe entry{};
  entry.opcode = operation;
  entry.fd = socket.get();
  entry.addr = reinterpret_cast<std::uint64_t>(data);
  entry.len = static_cast<std::uint32_t>(size);
  return entry;
}

}  // namespace

Ring::Ring() {
  fd_ = UniqueFd(static_cast<int>(::syscall(SYS_io_uring_setup, 1, &parameters_)));
  if (!fd_) {
    return;
  }
  const auto map = [this](std::size_t size, std::int64_t offset) {
    void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_.get(), offset);
    must(memory != MAP_FAILED, "mmap");
    return static_cast<char*>(memory);
  };
  submissions_ = map(parameters_.sq_off.array + sizeof(std::uint32_t), IORING_OFF_SQ_RING);
  completions_ = map(parameters_.cq_off.cqes + 2 * sizeof(io_uring_cqe), IORING_OFF_CQ_RING);
  entry_ = reinterpret_cast<io_uring_sqe*>(map(sizeof(io_uring_sqe), IORING_OFF_SQES));
}

void Ring::send(const UniqueFd& socket, const std::string& bytes, By by) {
  io_uring_sqe entry = transfer(IORING_OP_SEND, socket, bytes.data(), bytes.size());
  entry.flags = by == By::worker ? IOSQE_ASYNC : 0;
  must(operate(entry) == static_cast<std::int32_t>(bytes.size()), "send by io_uring");
}

void Ring::send_to(const UniqueFd& socket, const std::string& bytes, std::uint16_t port) {
  sockaddr_in to = loopback(port);
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  const msghdr message{.msg_name = &to,
                       .msg_namelen = sizeof(to),
                       .msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = nullptr,
                       .msg_controllen = 0,
                       .msg_flags = 0};
  must(operate(transfer(IORING_OP_SENDMSG, socket, &message, 1)) == static_cast<std::int32_t>(bytes.size()),
       "sendmsg by io_uring");
}

void Ring::receive(const UniqueFd& socket, std::size_t size) {
  std::string data(size, '\0');
  io_uring_sqe entry = transfer(IORING_OP_RECV, socket, data.data(), size);
  entry.msg_flags = MSG_WAITALL;
  must(operate(entry) == static_cast<std::int32_t>(size), "recv by io_uring");
}

std::int32_t Ring::operate(const io_uring_sqe& entry) {
  *entry_ = entry;
  at(submissions_, parameters_.sq_off.array) = 0;
  __atomic_fetch_add(&at(submissions_, parameters_.sq_off.tail), 1, __ATOMIC_RELEASE);
  must(::syscall(SYS_io_uring_enter, fd_.get(), 1, 1, IORING_ENTER_GETEVENTS, nullptr, 0) == 1, "io_uring_enter");
  const std::uint32_t head = at(completions_, parameters_.cq_off.head);
  const auto* const done = reinterpret_cast<const io_uring_cqe*>(completions_ + parameters_.cq_off.cqes);
  const std::int32_t result = done[head & at(completions_, parameters_.cq_off.ring_mask)].res;
  __atomic_store_n(&at(completions_, parameters_.cq_off.head), head + 1, __ATOMIC_RELEASE);
  return result;
}

}  // namespace tacho::kernel_test
