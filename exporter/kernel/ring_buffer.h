#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/result.h"
#include "kernel/bpf_object.h"

struct ring_buffer;

namespace tacho::kernel {

/// A ring buffer of a loaded object. An exception of the taker does not pass through libbpf, which is C: it is logged
/// and counted.
class RingBuffer {
 public:
  using Take = std::function<void(std::span<const std::byte> record)>;

  static Result<RingBuffer> open(const BpfObject& object, std::string_view map, Take take);

  /// The same for records of one type; a shorter one is left out.
  template <class Record>
  static Result<RingBuffer> open(const BpfObject& object, std::string_view map,
                                 std::function<void(const Record&)> take) {
    return open(object, map, Take([take = std::move(take)](std::span<const std::byte> bytes) {
                  if (bytes.size() >= sizeof(Record)) {
                    take(*reinterpret_cast<const Record*>(bytes.data()));  // records are 8-byte aligned
                  }
                }));
  }

  /// Becomes readable when there are records.
  [[nodiscard]] int descriptor() const;
  /// Hands over all records. @return how many were lost because the taker threw
  std::size_t consume();

  /// The argument of libbpf's callback.
  struct Taker {
    Take take;
    std::size_t lost = 0;

    /// A callback for a Taker. Always 0: the records after a lost one are taken.
    static int call(void* taker, void* data, std::size_t size) noexcept;
  };

 private:
  struct Deleter {
    void operator()(ring_buffer* ring) const;
  };

  std::unique_ptr<Taker> taker_;
  std::unique_ptr<ring_buffer, Deleter> ring_;
};

}  // namespace tacho::kernel
