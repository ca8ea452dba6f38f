#include "kernel/cpus.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

using tacho::kernel::Cpu;
using tacho::kernel::parse_cpu_ranges;
using tacho::kernel::read_cpus;

namespace {

/// A directory as /sys/devices/system/cpu.
class Sysfs {
 public:
  Sysfs() : directory_(std::filesystem::temp_directory_path() / ("tacho-cpus-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(directory_);
  }
  Sysfs(const Sysfs&) = delete;
  Sysfs& operator=(const Sysfs&) = delete;
  ~Sysfs() { std::filesystem::remove_all(directory_); }

  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((directory_ / file).parent_path());
    std::ofstream(directory_ / file) << text << '\n';
  }
  [[nodiscard]] std::string path() const { return directory_.string(); }

 private:
  std::filesystem::path directory_;
};

}  // namespace

TEST_CASE("cpus: a list is its ranges, and nothing else is a list") {
  using Ranges = std::vector<std::pair<unsigned, unsigned>>;
  CHECK(parse_cpu_ranges("0-3,8,10-11\n") == Ranges{{0, 3}, {8, 8}, {10, 11}});
  CHECK(parse_cpu_ranges("7") == Ranges{{7, 7}});
  for (const char* none : {"", "\n", "-", "3-1", "1,", "1-", "a", "1 2", "1-99999999999999"}) {
    CAPTURE(none);
    CHECK_FALSE(parse_cpu_ranges(none));
  }
}

TEST_CASE("cpus: those that are online, with the cache and the core that they share") {
  const Sysfs sysfs;
  sysfs.write("possible", "0-127");
  sysfs.write("online", "0-1,5");
  for (const auto& [cpu, core, cache] : {std::tuple("0", "0,5", "0-1,5"), {"1", "1", "0-1,5"}, {"5", "0,5", "0-1,5"}}) {
    const std::string of = std::string("cpu") + cpu;
    sysfs.write(of + "/topology/thread_siblings_list", core);
    sysfs.write(of + "/cache/index0/level", "1");
    sysfs.write(of + "/cache/index0/shared_cpu_list", core);
    sysfs.write(of + "/cache/index1/level", "3");
    sysfs.write(of + "/cache/index1/shared_cpu_list", cache);
  }
  const auto cpus = read_cpus(sysfs.path());
  CHECK(cpus.end == 128);
  CHECK(cpus.online == std::vector<Cpu>{{0, 0, 0}, {1, 0, 1}, {5, 0, 0}});
}

TEST_CASE("cpus: a guest does not tell of caches") {
  const Sysfs sysfs;
  sysfs.write("possible", "0-127");
  sysfs.write("online", "0-3");
  const auto cpus = read_cpus(sysfs.path());
  CHECK(cpus.end == 128);
  CHECK(cpus.online == std::vector<Cpu>{{0, 0, 0}, {1, 0, 1}, {2, 0, 2}, {3, 0, 3}});
}

TEST_CASE("cpus: without sysfs all that the kernel may use are online") {
  const auto cpus = read_cpus("/nonexistent");
  CHECK(cpus.end >= 1);
  CHECK(cpus.online.size() == cpus.end);
}

TEST_CASE("cpus: this machine's") {
  const auto cpus = read_cpus();
  CHECK(cpus.online.size() == static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN)));
}
