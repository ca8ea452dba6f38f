#include "kernel/support/taken.h"

#include <sys/mman.h>
#include <unistd.h>

#include "bpf/anatomy.h"
#include "kernel/support/wire.h"

namespace tacho::kernel_test {
namespace {

const auto kPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));

}  // namespace

Taken::Taken(App& app) : page_(MAP_FAILED) {
  for (const auto* object : app.objects()) {
    if (object->name() == "socket") {
      page_ = ::mmap(nullptr, kPage, PROT_READ, MAP_SHARED, object->map("slow_records"), 0);
    }
  }
  must(page_ != MAP_FAILED, "mmap");
}

Taken::~Taken() {
  ::munmap(page_, kPage);
}

std::uint64_t Taken::records() const {
  constexpr std::uint64_t kHeader = 8;
  constexpr std::uint64_t kRecord = (sizeof(request_record) + kHeader + 7) / 8 * 8;
  return __atomic_load_n(static_cast<const std::uint64_t*>(page_), __ATOMIC_ACQUIRE) / kRecord;
}

}  // namespace tacho::kernel_test
