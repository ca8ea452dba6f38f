// What is refused to tacho is missing on its pages, and not 0.

#include <bpf/bpf.h>

#include <catch2/catch.hpp>
#include <functional>
#include <stdexcept>
#include <string>

#include "kernel/features.h"
#include "kernel/support/child.h"
#include "kernel/support/refusal.h"
#include "kernel/support/running.h"

using namespace tacho;
using namespace tacho::kernel_test;

namespace {

void demand(bool holds, const std::string& what) {
  if (!holds) {
    throw std::runtime_error(what);
  }
}

config::Config only_threads() {
  config::Config config = watching(playground() + "/*");
  config.probes.socket.enabled = false;
  config.probes.poll.enabled = false;
  return config;
}

/// In a process of its own, which keeps the refusals.
void apart(const std::function<void()>& body) {
  Child child("", [&body](Line&) { body(); });
  child.finish();
}

}  // namespace

TEST_CASE("iterators that load and are refused when they begin are not attached, and that is what is exported") {
  apart([] {
    refuse(BPF_ITER_CREATE);
    Running tacho(only_threads());
    const Page page = tacho.page();
    demand(page.value("tacho_probe_attached", {{"probe", "sched"}, {"hook", "threads"}}) == 1, "threads are followed");
    demand(page.value("tacho_probe_attached", {{"probe", "sched"}, {"hook", "older_threads"}}) == 0,
           "older threads are not found");
  });
}

TEST_CASE("losses that the kernel does not tell are not exported as 0") {
  apart([] {
    Running tacho(only_threads());
    const auto losses = [&tacho] { return tacho.page().count("tacho_lost_events_total", {{"probe", "sched"}}); };
    const std::size_t before = losses();
    demand(before > 1, "losses are exported");
    refuse(BPF_MAP_LOOKUP_ELEM);
    demand(losses() == 1, "skipped alone is exported");
  });
}

TEST_CASE("where types of programs are refused that is missing, before anything is loaded") {
  demand(kernel::missing_prerequisites("").empty(), "nothing is missing here");
  apart([] {
    refuse(BPF_BTF_LOAD);
    const auto missing = kernel::missing_prerequisites("");
    demand(missing.size() == 1 && missing[0].contains("BTF_LOAD"), "the refusal is told");
  });
}
