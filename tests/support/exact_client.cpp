// A client that sends a known number of requests and counts the replies: the other known side of the end-to-end
// tests. Prints one line of JSON when it is connected and one a batch; ends with 1 when a request was not answered.
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "support/load.h"

namespace {

using tacho::support::Load;
using tacho::support::Outcome;
using tacho::support::Plan;

std::atomic<bool> stopped = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

double seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

nlohmann::json describe(const Outcome& outcome) {
  nlohmann::json text = {{"requests", outcome.answered},
                         {"failed", outcome.failed},
                         {"connections", outcome.connections},
                         {"elapsed_seconds", seconds(outcome.elapsed)}};
  if (!outcome.latencies.empty()) {
    const auto& sorted = outcome.latencies;
    std::chrono::nanoseconds sum{};
    for (const auto latency : sorted) {
      sum += latency;
    }
    const auto count = sorted.size();
    text["latency_seconds"] = {{"sum", seconds(sum)},
                               {"min", seconds(sorted.front())},
                               {"p50", seconds(sorted[count / 2])},
                               {"p99", seconds(sorted[count * 99 / 100])},
                               {"max", seconds(sorted.back())}};
  }
  return text;
}

bool run_batch(Load& load, std::optional<std::uint64_t> requests) {
  const auto outcome = load.run(requests, stopped);
  std::cout << describe(outcome).dump() << '\n' << std::flush;
  return outcome.failed == 0;
}

bool run_batches_from_stdin(Load& load) {
  std::uint64_t requests = 0;
  while (std::cin >> requests) {
    if (!run_batch(load, requests)) {
      return false;
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Plan plan;
  std::string address;
  std::optional<std::uint64_t> requests;
  bool interactive = false;
  CLI::App app("A load client that sends a known number of requests, one outstanding on each connection");
  app.add_option("--connect", address, "127.0.0.1:PORT, [::1]:PORT or unix:PATH")->required();
  app.add_option("--requests", requests, "of all connections together; without it until SIGTERM or SIGINT");
  app.add_option("--connections", plan.connections)->check(CLI::PositiveNumber);
  app.add_option("--requests-per-connection", plan.requests_per_connection, "then a new connection; 0: keep it");
  app.add_flag("--resets", plan.resets, "end these connections by a reset");
  app.add_option("--request-bytes", plan.request_bytes)->check(CLI::PositiveNumber);
  app.add_option("--reply-bytes", plan.reply_bytes)->check(CLI::PositiveNumber);
  app.add_option("--rate", plan.rate, "requests a second on a fixed schedule; 0: as fast as replies come")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--interactive", interactive,
               "open the connections, then read from standard input how many requests to send, batch by batch");
  CLI11_PARSE(app, argc, argv);
  plan.keep_open = interactive;

  const auto parsed = tacho::support::parse_address(address);
  if (!parsed) {
    std::cerr << "exact_client: " << parsed.error().message << '\n';
    return 1;
  }
  plan.address = *parsed;
  const auto stop = [](int) { stopped = true; };
  std::signal(SIGTERM, stop);
  std::signal(SIGINT, stop);

  Load load(plan);
  if (const auto opened = load.open(); !opened) {
    std::cerr << "exact_client: " << opened.error().within(address).message << '\n';
    return 1;
  }
  // From here on SIGTERM ends the load instead of the program.
  std::cout << nlohmann::json{{"connected", true}}.dump() << '\n' << std::flush;
  const bool answered = interactive ? run_batches_from_stdin(load) : run_batch(load, requests);
  return answered ? 0 : 1;
}
