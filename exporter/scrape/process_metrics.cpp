#include "scrape/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace tacho::scrape {
namespace {

/// Fields of /proc/self/stat from number 3 on (proc(5)); the command before them may contain spaces.
std::vector<double> stat_fields() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const auto close = line.rfind(')');
  std::vector<double> fields;
  if (close == std::string::npos) {
    return fields;
  }
  std::istringstream rest(line.substr(close + 2));
  std::string state;
  rest >> state;
  fields.push_back(0);
  double value = 0;
  while (rest >> value) {
    fields.push_back(value);
  }
  return fields;
}

double boot_time() {
  std::ifstream file("/proc/stat");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("btime ")) {
      return std::stod(line.substr(6));
    }
  }
  return 0;
}

constexpr std::size_t kFirst = 3;  // the number of stat_fields()' first
constexpr std::size_t kStart = 22 - kFirst;

/// Unix time in seconds.
double start_time(const std::vector<double>& stat) {
  return boot_time() + stat.at(kStart) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace

std::chrono::system_clock::time_point process_start() {
  const std::vector<double> stat = stat_fields();
  const auto seconds = std::chrono::duration<double>(stat.size() > kStart ? start_time(stat) : 0);
  return std::chrono::system_clock::time_point(std::chrono::duration_cast<std::chrono::nanoseconds>(seconds));
}

std::vector<SelfFamily> process_metrics(const ServingCost& other) {
  std::vector<SelfFamily> families;
  const auto add = [&families](SelfName name, double value) { families.emplace_back(name, value); };
  const std::vector<double> stat = stat_fields();
  constexpr std::size_t kThreads = 20 - kFirst;
  constexpr std::size_t kVirtual = 23 - kFirst;
  constexpr std::size_t kResident = 24 - kFirst;
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) {
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    add("process_cpu_seconds_total", seconds(usage.ru_utime) + seconds(usage.ru_stime) + other.cpu_seconds);
  }
  std::error_code error;
  std::ptrdiff_t descriptors = 0;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end; !error && entry != end;
       entry.increment(error)) {
    ++descriptors;
  }
  if (!error) {
    add("process_open_fds", static_cast<double>(descriptors - 1));  // less the walk's own
  }
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    add("process_max_fds", static_cast<double>(limit.rlim_cur));
  }
  if (stat.size() > kResident) {
    add("process_start_time_seconds", start_time(stat));
    add("process_virtual_memory_bytes", stat[kVirtual]);
    add("process_resident_memory_bytes",
        stat[kResident] * static_cast<double>(::sysconf(_SC_PAGESIZE)) + other.memory_bytes);
    add("process_threads", stat[kThreads]);
  }
  return families;
}

}  // namespace tacho::scrape
