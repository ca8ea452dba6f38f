#include "kernel/support/cgroup.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <system_error>
#include <thread>

#include "targets/cgroup_tree.h"

namespace tacho::kernel_test {

const std::string& Cgroup::mount() {
  static const std::string where = targets::find_cgroup_mount("/proc/self/mountinfo").value();
  return where;
}

Cgroup::Cgroup(std::string path) : path_(std::move(path)) {
  if (::mkdir(directory().c_str(), 0755) != 0) {
    throw std::system_error(errno, std::system_category(), "mkdir " + directory());
  }
}

void Cgroup::remove() {
  using namespace std::chrono_literals;
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  // A process that has been waited for may still be on its way out of its cgroup, which announces nothing.
  while (!removed_ && ::rmdir(directory().c_str()) != 0 && errno != ENOENT) {
    if (std::chrono::steady_clock::now() > deadline) {
      std::perror(("rmdir " + directory()).c_str());
      break;
    }
    std::this_thread::sleep_for(1ms);
  }
  removed_ = true;
}

const std::string& playground() {
  static const std::string path = "/tacho-kernel-" + std::to_string(::getpid());
  return path;
}

std::string unique_name() {
  // In the order of the alphabet, which is the order in which tacho plans targets.
  static int number = 1000;
  return "test-" + std::to_string(++number);
}

}  // namespace tacho::kernel_test
