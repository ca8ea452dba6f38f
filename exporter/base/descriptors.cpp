#include "base/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace tacho {

void occupy_standard_descriptors() {
  for (int descriptor = ::open("/dev/null", O_RDWR); descriptor >= 0; descriptor = ::open("/dev/null", O_RDWR)) {
    if (descriptor > STDERR_FILENO) {
      ::close(descriptor);
      return;
    }
  }
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

}  // namespace tacho
