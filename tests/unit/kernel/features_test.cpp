#include "kernel/features.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <string>

namespace kernel = tacho::kernel;

TEST_CASE("kprobes lack what the level of the sysctl and the rights in tracefs take") {
  using kernel::missing_for_kprobes;
  CHECK(missing_for_kprobes({.paranoid = 2, .may_administer = false, .may_write_events = true}).empty());
  CHECK(missing_for_kprobes({.paranoid = 3, .may_administer = true, .may_write_events = true}).empty());
  CHECK(missing_for_kprobes({.paranoid = 3, .may_administer = false, .may_write_events = true}) ==
        "CAP_SYS_ADMIN (kernel.perf_event_paranoid is 3)");
  CHECK(missing_for_kprobes({.paranoid = 2, .may_administer = true, .may_write_events = false}) ==
        "to write to /sys/kernel/tracing");
  CHECK(missing_for_kprobes({.paranoid = 4, .may_administer = false, .may_write_events = false}) ==
        "CAP_SYS_ADMIN (kernel.perf_event_paranoid is 4) and to write to /sys/kernel/tracing");
}

TEST_CASE("kprobes would help where a hook is missing, also if the variant that knows them lost") {
  using kernel::HookState;
  using Hooks = std::vector<HookState>;
  const HookState state{"state", "socket_storage", "hash: socket_gone: fentry: no; kprobe: no"};
  CHECK(kernel::kprobes_would_help(Hooks{{"send", "none", "tp_btf: no; fentry: no"}, state}));
  CHECK(kernel::kprobes_would_help(Hooks{{"send", "none", "kprobe: no"}, {"state", "hash", ""}}));
  CHECK_FALSE(kernel::kprobes_would_help(Hooks{{"send", "tp_btf", ""}, state}));
  CHECK_FALSE(kernel::kprobes_would_help(Hooks{{"send", "none", "tp_btf: no"}, {"state", "hash", ""}}));
}

TEST_CASE("a BTF file that is not there is a missing prerequisite that names the file and the remedy") {
  const auto missing = kernel::missing_prerequisites("/nonexistent/btf");
  const auto about_btf = std::ranges::find_if(
      missing, [](const std::string& line) { return line.find("/nonexistent/btf") != std::string::npos; });
  REQUIRE(about_btf != missing.end());
  CHECK(about_btf->find("--btf.path") != std::string::npos);
}

TEST_CASE("a file that is there and has no BTF is a missing prerequisite, too") {
  for (const char* file : {"/etc/passwd", "/etc", "/proc/self/exe"}) {
    CAPTURE(file);
    const auto missing = kernel::missing_prerequisites(file);
    const auto about_btf = std::ranges::find_if(missing, [&](const std::string& line) { return line.contains(file); });
    REQUIRE(about_btf != missing.end());
    CHECK(about_btf->contains("--btf.path"));
  }
}

TEST_CASE("there are at least as many possible CPUs as online ones") {
  CHECK(kernel::possible_cpus() >= static_cast<unsigned>(::sysconf(_SC_NPROCESSORS_ONLN)));
}

TEST_CASE("a bpf(2) that is refused is told with its remedy") {
  using kernel::why_bpf_is_refused;
  CHECK(why_bpf_is_refused(EPERM, true).contains("run tacho outside of it"));
  CHECK(why_bpf_is_refused(EPERM, false).contains("seccomp=deploy/image/seccomp.json"));
  CHECK(why_bpf_is_refused(EACCES, false).contains("seccomp profile"));
  CHECK(why_bpf_is_refused(ENOSYS, false).contains("CONFIG_BPF_SYSCALL"));
  CHECK(why_bpf_is_refused(ENOMEM, false).contains("memory limit"));
  CHECK(why_bpf_is_refused(E2BIG, false).contains("Argument list too long"));
}
