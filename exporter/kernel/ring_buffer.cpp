#include "kernel/ring_buffer.h"

#include <bpf/libbpf.h>
#include <spdlog/spdlog.h>

#include <exception>
#include <string>
#include <utility>

namespace tacho::kernel {

void RingBuffer::Deleter::operator()(ring_buffer* ring) const {
  ring_buffer__free(ring);
}

int RingBuffer::Taker::call(void* taker, void* data, std::size_t size) noexcept {
  auto& self = *static_cast<Taker*>(taker);
  try {
    self.take({static_cast<const std::byte*>(data), size});
  } catch (const std::exception& error) {
    ++self.lost;
    spdlog::error("a record of the kernel's is lost: {}", error.what());
  } catch (...) {
    ++self.lost;
  }
  return 0;
}

Result<RingBuffer> RingBuffer::open(const BpfObject& object, std::string_view map, Take take) {
  RingBuffer ring;
  ring.taker_ = std::make_unique<Taker>(std::move(take));
  ring.ring_.reset(ring_buffer__new(object.map(map), Taker::call, ring.taker_.get(), nullptr));
  if (!ring.ring_) {
    return fail_errno("cannot read the ring buffer " + std::string(map));
  }
  return ring;
}

int RingBuffer::descriptor() const {
  return ring_buffer__epoll_fd(ring_.get());
}

std::size_t RingBuffer::consume() {
  taker_->lost = 0;
  ring_buffer__consume(ring_.get());
  return taker_->lost;
}

}  // namespace tacho::kernel
