#include "kernel/bpf_log.h"

#include <bpf/libbpf.h>

#include <catch2/catch.hpp>
#include <cstdarg>
#include <string>
#include <thread>

using tacho::kernel::BpfLogCapture;

namespace {

/// The function that install_bpf_log() gave libbpf.
libbpf_print_fn_t installed() {
  tacho::kernel::install_bpf_log();
  const libbpf_print_fn_t print = libbpf_set_print(nullptr);
  libbpf_set_print(print);
  return print;
}

/// Says something as libbpf does.
__attribute__((format(printf, 2, 3))) void say(libbpf_print_level level, const char* format, ...) {
  const libbpf_print_fn_t print = installed();
  va_list arguments;
  va_start(arguments, format);
  print(level, format, arguments);
  va_end(arguments);
}

}  // namespace

TEST_CASE("a capture keeps libbpf's own words") {
  installed();
  const BpfLogCapture log;
  const char garbage[] = "this is no ELF file";
  CHECK(bpf_object__open_mem(garbage, sizeof(garbage), nullptr) == nullptr);
  INFO(log.summary());
  CHECK(log.summary().find("ELF") != std::string::npos);
  CHECK_FALSE(log.summary().starts_with("libbpf: "));
}

TEST_CASE("the verifier's last complaint is told with the program it is about") {
  const BpfLogCapture log;
  say(LIBBPF_WARN, "libbpf: prog 'socket_send': BPF program load failed: %s\n", "Permission denied");
  say(LIBBPF_WARN,
      "libbpf: prog 'socket_send': -- BEGIN PROG LOAD LOG --\n"
      "0: R1=ctx(off=0,imm=0)\nR0 invalid mem access 'scalar'\n"
      "processed 12 insns (limit 1000000) max_states_per_insn 0\n-- END PROG LOAD LOG --\n");
  say(LIBBPF_WARN, "libbpf: failed to load object 'socket'\n");
  CHECK(log.summary() ==
        "prog 'socket_send': BPF program load failed: Permission denied (R0 invalid mem access 'scalar')");
}

TEST_CASE("a load log that says nothing but its size is left out") {
  const BpfLogCapture log;
  say(LIBBPF_WARN, "libbpf: prog 'p': BPF program load failed: EPERM\n");
  say(LIBBPF_WARN, "libbpf: prog 'p': -- BEGIN PROG LOAD LOG --\nprocessed 0 insns\n-- END PROG LOAD LOG --\n");
  CHECK(log.summary() == "prog 'p': BPF program load failed: EPERM");
}

TEST_CASE("nothing said gives no summary, what is no warning neither") {
  const BpfLogCapture log;
  CHECK(log.summary().empty());
  say(LIBBPF_INFO, "libbpf: prog 'p': this is no warning: failed\n");
  say(LIBBPF_DEBUG, "libbpf: loading failed object\n");
  CHECK(log.summary().empty());
}

TEST_CASE("the first warning that tells why comes before the first of all") {
  const BpfLogCapture log;
  say(LIBBPF_WARN, "libbpf: Kernel doesn't support something\n");
  CHECK(log.summary() == "Kernel doesn't support something");
  say(LIBBPF_WARN, "libbpf: map 'm': failed to create: EPERM\n");
  say(LIBBPF_WARN, "libbpf: failed to load object 'o'\n");
  CHECK(log.summary() == "map 'm': failed to create: EPERM");
}

TEST_CASE("of a verifier's log that is too long to keep, the end and the program's name are told") {
  const BpfLogCapture log;
  say(LIBBPF_WARN, "libbpf: prog 'p': BPF program load failed: EINVAL\n");
  std::string verifier;
  for (int i = 0; i < 20'000; ++i) {
    verifier += std::to_string(i) + ": (bf) r1 = r10\n";
  }
  say(LIBBPF_WARN, "libbpf: prog 'p': -- BEGIN PROG LOAD LOG --\n%sR0 has no value\n-- END PROG LOAD LOG --\n",
      verifier.c_str());
  CHECK(log.summary() == "prog 'p': BPF program load failed: EINVAL (R0 has no value)");
}

TEST_CASE("a message without a line break is understood") {
  const BpfLogCapture log;
  say(LIBBPF_WARN, "libbpf: map 'm': failed to create");
  CHECK(log.summary() == "map 'm': failed to create");
}

TEST_CASE("captures nest: the inner one hears, then the outer one again") {
  const BpfLogCapture outer;
  {
    const BpfLogCapture inner;
    say(LIBBPF_WARN, "libbpf: inner failed\n");
    CHECK(inner.summary() == "inner failed");
  }
  CHECK(outer.summary().empty());
  say(LIBBPF_WARN, "libbpf: outer failed\n");
  CHECK(outer.summary() == "outer failed");
}

TEST_CASE("what another thread's libbpf says is not captured here") {
  const BpfLogCapture log;
  std::thread([] { say(LIBBPF_WARN, "libbpf: elsewhere failed\n"); }).join();
  CHECK(log.summary().empty());
}

TEST_CASE("a flood of warnings is bounded, and the first is still told") {
  const BpfLogCapture log;
  for (int i = 0; i < 20'000; ++i) {
    say(LIBBPF_WARN, "libbpf: attempt %d failed\n", i);
  }
  CHECK(log.summary() == "attempt 0 failed");
}
