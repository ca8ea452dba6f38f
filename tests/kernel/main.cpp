// The tests that load the programs into this machine's kernel. They need root (or CAP_BPF, CAP_PERFMON and the right to
// make cgroups); without, the reason is printed and the exit code is 77.

#include <spdlog/spdlog.h>

#include <csignal>
#include <iostream>
#include <string>
#include <vector>

#include "kernel/bpf_log.h"
#include "kernel/support/cgroup.h"
#include "kernel/support/obstacle.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "support/run_tests.h"

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  if (arguments.size() == 5 && arguments[1] == "--serve") {
    return tacho::kernel_test::serve_under_other_name({arguments.begin() + 2, arguments.end()});
  }
  if (const std::string reason = tacho::kernel_test::obstacle(); !reason.empty()) {
    std::cout << "kernel tests are skipped: " << reason << "\n";
    return tacho::kernel_test::kSkipped;
  }
  spdlog::set_level(spdlog::level::err);
  tacho::kernel::install_bpf_log();
  std::signal(SIGPIPE, SIG_IGN);
  const tacho::kernel_test::Cgroup playground(tacho::kernel_test::playground());
  const int status = tacho::test::run_tests(argc, argv);
  tacho::kernel_test::stop_shared();
  return status;
}
