// An open-loop client: requests are sent when a Poisson process says so, on connections that stay open. Reads loads
// from standard input, a line each: RATE SECONDS SEED (rate 0: closed loop). Prints {"connected"} and then a line of
// JSON a load.
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "support/open_loop/generator.h"

namespace {

using tacho::support::Burst;
using tacho::support::BurstOutcome;
using tacho::support::Generator;
using tacho::support::MakeProtocol;
using tacho::support::Reach;

double seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

nlohmann::json quantiles(std::vector<std::chrono::nanoseconds>& times) {
  if (times.empty()) {
    return nullptr;
  }
  std::ranges::sort(times);
  double sum = 0;
  for (const auto time : times) {
    sum += seconds(time);
  }
  const auto count = times.size();
  return {{"mean", sum / static_cast<double>(count)},
          {"p50", seconds(times[count * 50 / 100])},
          {"p90", seconds(times[count * 90 / 100])},
          {"p99", seconds(times[count * 99 / 100])},
          {"max", seconds(times.back())}};
}

nlohmann::json describe(BurstOutcome& outcome) {
  return {{"started", seconds(outcome.started.time_since_epoch())},
          {"elapsed", seconds(outcome.elapsed)},
          {"offered", outcome.offered},
          {"sent", outcome.sent},
          {"lost", outcome.lost},
          {"completed", outcome.completed},
          {"errors", outcome.errors},
          {"dropped", outcome.dropped},
          {"cpu_seconds", seconds(outcome.on_cpu)},
          {"run_queue_seconds", seconds(outcome.run_queue)},
          {"latency", quantiles(outcome.latencies)},
          {"round_trip", quantiles(outcome.round_trips)},
          {"timeline", outcome.timeline},
          {"timeline_bin", seconds(tacho::support::kTimelineBin)}};
}

MakeProtocol protocol_named(const std::string& name, const std::string& request, const std::string& headers) {
  using namespace tacho::support;  // every protocol there is
  const std::map<std::string, MakeProtocol> all = {
      {"http", [=] { return make_http(request, headers); }},
      {"redis", [=] { return make_redis(request); }},
      {"memcached", [=] { return make_memcached(request); }},
      {"echo", [=] { return make_echo(request); }},
      {"postgres", [=] { return make_postgres(request); }},
      {"mysql", [=] { return make_mysql(request); }},
      {"dns", [=] { return make_dns(request); }},
  };
  const auto found = all.find(name);
  return found == all.end() ? nullptr : found->second;
}

}  // namespace

int main(int argc, char** argv) {
  Reach reach;
  std::string address;
  std::string protocol;
  std::string request;
  std::string headers;
  double timeout = 0;
  CLI::App app("An open-loop client with Poisson arrivals; latencies count from when a request was due");
  app.add_option("--connect", address, "127.0.0.1:PORT, [::1]:PORT or unix:PATH")->required();
  app.add_option("--protocol", protocol, "http, redis, memcached, echo, postgres, mysql or dns (over UDP)")->required();
  app.add_option("--request", request, "path, command, query, name or message; {} becomes a random number")->required();
  app.add_option("--numbers", reach.numbers, "the random number is below this")->check(CLI::PositiveNumber);
  app.add_option("--headers", headers, "more header lines of HTTP, each with its line end");
  app.add_option("--connections", reach.connections)->check(CLI::PositiveNumber);
  app.add_flag("--reconnect", reach.reconnect, "a connection for each request");
  app.add_option("--loss", reach.loss, "share of datagrams that are lost, in each direction")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--timeout", timeout, "seconds until a request without reply is an error")->default_val(30);
  CLI11_PARSE(app, argc, argv);

  const auto make_protocol = protocol_named(protocol, request, headers);
  const auto parsed = tacho::support::parse_address(address);
  if (!parsed || !make_protocol) {
    std::cerr << "open_loop_client: " << (parsed ? "unknown protocol " + protocol : parsed.error().message) << '\n';
    return 1;
  }
  reach.address = *parsed;
  reach.datagrams = protocol == "dns";
  if (reach.loss > 0 && !reach.datagrams) {
    std::cerr << "open_loop_client: --loss is for datagrams; put a fault_proxy before a server of streams\n";
    return 1;
  }
  reach.timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(timeout));
  (void)prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);

  Generator generator(reach, make_protocol);
  if (const auto opened = generator.open(); !opened) {
    std::cerr << "open_loop_client: " << opened.error().within(address).message << '\n';
    return 1;
  }
  std::cout << nlohmann::json{{"connected", reach.connections}}.dump() << '\n' << std::flush;
  Burst burst;
  double duration = 0;
  while (std::cin >> burst.rate >> duration >> burst.seed) {
    burst.duration = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(duration));
    auto outcome = generator.run(burst);
    if (!outcome) {
      std::cerr << "open_loop_client: " << outcome.error().within(address).message << '\n';
      return 1;
    }
    std::cout << describe(*outcome).dump() << '\n' << std::flush;
  }
  return 0;
}
