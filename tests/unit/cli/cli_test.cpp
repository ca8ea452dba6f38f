#include "cli.h"

#include <catch2/catch.hpp>
#include <initializer_list>
#include <string>
#include <variant>
#include <vector>

#include "base/version.h"
#include "boundary/question.h"

namespace {

using tacho::Cli;
using tacho::ExitNow;

std::variant<Cli, ExitNow> parse(std::initializer_list<const char*> arguments) {
  std::vector<const char*> all{"tacho"};
  all.insert(all.end(), arguments);
  return tacho::parse_cli(all);
}

Cli accepted(std::initializer_list<const char*> arguments) {
  const auto parsed = parse(arguments);
  if (const auto* stop = std::get_if<ExitNow>(&parsed)) {
    FAIL("refused: " << stop->err << stop->out);
  }
  return std::get<Cli>(parsed);
}

/// The first line of what is printed to stderr.
std::string refused(std::initializer_list<const char*> arguments) {
  const auto parsed = parse(arguments);
  REQUIRE(std::holds_alternative<ExitNow>(parsed));
  const auto& stop = std::get<ExitNow>(parsed);
  CHECK(stop.code == tacho::kExitUsage);
  CHECK(stop.out.empty());
  CHECK(stop.err.ends_with("\nSee tacho --help.\n"));
  return stop.err.substr(0, stop.err.find('\n'));
}

}  // namespace

TEST_CASE("a bare tacho serves with the defaults") {
  const Cli cli = accepted({});
  CHECK(cli.command == Cli::Command::serve);
  CHECK(cli.config_file.empty());
  CHECK(cli.listen_addresses == std::vector<std::string>{":9435"});
  CHECK(cli.web_config_file.empty());
  CHECK(cli.telemetry_path == "/metrics");
  CHECK(cli.log_level == tacho::LogLevel::info);
  CHECK(cli.log_format == tacho::LogFormat::text);
  CHECK(cli.procfs == "/proc");
  CHECK(cli.cgroupfs.empty());
  CHECK(cli.btf_file.empty());
}

TEST_CASE("flags take their value after a space or after an equals sign") {
  for (const Cli& cli :
       {accepted({"--config.file", "a.yaml", "--web.config.file", "w.yaml", "--web.telemetry-path", "/m", "--log.level",
                  "debug", "--log.format", "json", "--path.procfs", "/host/proc", "--path.cgroupfs", "/host/cgroup",
                  "--btf.path", "/b"}),
        accepted({"--config.file=a.yaml", "--web.config.file=w.yaml", "--web.telemetry-path=/m", "--log.level=debug",
                  "--log.format=json", "--path.procfs=/host/proc", "--path.cgroupfs=/host/cgroup", "--btf.path=/b"})}) {
    CHECK(cli.config_file == "a.yaml");
    CHECK(cli.web_config_file == "w.yaml");
    CHECK(cli.telemetry_path == "/m");
    CHECK(cli.log_level == tacho::LogLevel::debug);
    CHECK(cli.log_format == tacho::LogFormat::json);
    CHECK(cli.procfs == "/host/proc");
    CHECK(cli.cgroupfs == "/host/cgroup");
    CHECK(cli.btf_file == "/b");
  }
  CHECK(accepted({"--config.file=a=b.yaml"}).config_file == "a=b.yaml");
}

TEST_CASE("listen addresses add up and replace the default") {
  CHECK(accepted({"--web.listen-address", ":1", "--web.listen-address=[::1]:2"}).listen_addresses ==
        std::vector<std::string>{":1", "[::1]:2"});
  CHECK(accepted({"--web.listen-address=[::1]:3"}).listen_addresses == std::vector<std::string>{"[::1]:3"});
  const Cli cli = accepted({"--web.listen-address", ":1", "once"});
  CHECK(cli.listen_addresses == std::vector<std::string>{":1"});
  CHECK(cli.command == Cli::Command::once);
}

TEST_CASE("a command may stand before, between and after flags") {
  CHECK(accepted({"serve"}).command == Cli::Command::serve);
  CHECK(accepted({"plan"}).command == Cli::Command::plan);
  CHECK(accepted({"health"}).command == Cli::Command::health);
  for (const Cli& cli : {accepted({"check", "--config.file", "a", "--log.level=warn"}),
                         accepted({"--config.file", "a", "check", "--log.level=warn"}),
                         accepted({"--config.file", "a", "--log.level=warn", "check"})}) {
    CHECK(cli.command == Cli::Command::check);
    CHECK(cli.config_file == "a");
    CHECK(cli.log_level == tacho::LogLevel::warn);
  }
  CHECK(accepted({"--config.file", "check"}).command == Cli::Command::serve);
}

TEST_CASE("help and version go to stdout with code 0") {
  for (const auto& parsed : {parse({"--help"}), parse({"-h"}), parse({"check", "--help"}), parse({"top", "--help"}),
                             parse({"--help", "check"})}) {
    REQUIRE(std::holds_alternative<ExitNow>(parsed));
    const auto& stop = std::get<ExitNow>(parsed);
    CHECK(stop.code == tacho::kExitOk);
    CHECK(stop.err.empty());
    for (const char* word : {"--config.file",
                             "--web.listen-address",
                             "--web.config.file",
                             "--web.telemetry-path",
                             "--log.level",
                             "--log.format",
                             "--path.procfs",
                             "--path.cgroupfs",
                             "--btf.path",
                             "--version",
                             "serve",
                             "check",
                             "plan",
                             "once",
                             "top",
                             "health",
                             "slow",
                             "why",
                             "Options of top:",
                             "Options of slow:",
                             "Options of why:",
                             "--url",
                             "--json",
                             "Exit codes:"}) {
      CAPTURE(word);
      CHECK(stop.out.find(word) != std::string::npos);
    }
  }
  const auto parsed = parse({"--version"});
  CHECK(std::get<ExitNow>(parsed).code == tacho::kExitOk);
  CHECK(std::get<ExitNow>(parsed).out == "tacho " + std::string(tacho::version()) + "\n");
}

TEST_CASE("unknown flags and commands are refused with the nearest known one") {
  CHECK(refused({"--confg.file=x"}) == "tacho: unknown flag --confg.file (did you mean --config.file?)");
  CHECK(refused({"--web.listen-adress", ":1"}) ==
        "tacho: unknown flag --web.listen-adress (did you mean --web.listen-address?)");
  CHECK(refused({"check", "--log.levle", "x"}) == "tacho: unknown flag --log.levle (did you mean --log.level?)");
  CHECK(refused({"--something-else"}) == "tacho: unknown flag --something-else");
  CHECK(refused({"-x"}) == "tacho: unknown flag -x");
  CHECK(refused({"chek"}) == "tacho: unknown command chek (did you mean check?)");
  CHECK(refused({"--config.file", "a", "b"}) == "tacho: unknown command b");
  CHECK(refused({"check", "plan"}) == "tacho: more than one command: plan");
  CHECK(refused({"a\x1b[1m"}) == "tacho: unknown command a\\x1b[1m");
}

TEST_CASE("a listen address that can be none is bad usage, whatever the command is") {
  for (const char* address : {"9435", ":99999", ":", "[::1:1", "127.0.0.1:-1", ":http", "unix:x", "unix:@", "a b:1"}) {
    for (const char* command : {"serve", "check", "health"}) {
      CAPTURE(address, command);
      const std::string why = refused({command, "--web.listen-address=:1", "--web.listen-address", address});
      CHECK(why.starts_with("tacho: --web.listen-address: bad listen address '" + std::string(address)));
      CHECK(why.contains("write :9100"));
    }
  }
  CHECK(refused({"--web.listen-address=a\x1b[1m:1"}).contains("a\\x1b[1m"));
}

TEST_CASE("the help of top names every column that it sorts by") {
  const std::string help = std::get<ExitNow>(parse({"top", "--help"})).out;
  const std::string sort = help.substr(help.find("--sort"), help.find("--filter") - help.find("--sort"));
  for (std::uint8_t key = 0; key < tacho::boundary::kSortKeys; ++key) {
    const std::string column(tacho::boundary::sort_key_name(static_cast<tacho::boundary::SortKey>(key)));
    CAPTURE(sort, column);
    CHECK(sort.contains(column));
  }
}

TEST_CASE("top has flags of its own") {
  const Cli plain = accepted({"top"});
  CHECK(plain.command == Cli::Command::top);
  CHECK(plain.top.url == "http://127.0.0.1:9435");
  CHECK(plain.top.sort == "rate");
  CHECK_FALSE(plain.top.once);
  const Cli cli = accepted({"top", "--url", "https://me@node", "--password-file=p", "--ca-file", "c", "--sort=p99",
                            "--filter", "a b", "--once", "--json"});
  CHECK(cli.top.url == "https://me@node");
  CHECK(cli.top.password_file == "p");
  CHECK(cli.top.ca_file == "c");
  CHECK(cli.top.sort == "p99");
  CHECK(cli.top.filter == "a b");
  CHECK(cli.top.once);
  CHECK(cli.top.json);
  CHECK(refused({"top", "--onec"}) == "tacho: unknown flag --onec (did you mean --once?)");
  CHECK(refused({"serve", "--once"}).starts_with("tacho: unknown flag --once"));
}

TEST_CASE("why asks like slow") {
  CHECK(accepted({"why"}).command == Cli::Command::why);
  CHECK(accepted({"why", "shop", "--json"}).top.filter == "shop");
  CHECK(refused({"why", "--once"}).starts_with("tacho: unknown flag --once"));
}

TEST_CASE("slow asks like top, of some targets or of all") {
  CHECK(accepted({"slow"}).command == Cli::Command::slow);
  CHECK(accepted({"slow"}).top.filter.empty());
  const Cli cli = accepted({"slow", "shop/api", "--url=unix:/run/tacho.sock", "--json"});
  CHECK(cli.command == Cli::Command::slow);
  CHECK(cli.top.filter == "shop/api");
  CHECK(cli.top.url == "unix:/run/tacho.sock");
  CHECK(cli.top.json);
  CHECK(refused({"slow", "--sort=p99"}).starts_with("tacho: unknown flag --sort"));
  CHECK(refused({"slow", "a", "b"}).starts_with("tacho: unknown command b"));
}

TEST_CASE("bad values are refused") {
  CHECK(refused({"--config.file"}).starts_with("tacho: --config.file: "));
  CHECK(refused({"--config.file=", "check"}) == "tacho: --config.file= has no value");
  CHECK(refused({"--log.level", "loud"}).starts_with("tacho: --log.level: loud not in "));
  CHECK(refused({"--log.format=xml"}).starts_with("tacho: --log.format: xml not in "));
  CHECK(refused({"--log.level=info", "--log.level=debug"}).starts_with("tacho: --log.level: "));
  for (const char* path : {"metrics", "/me trics", "/a?b", "/a#b", "/%41", "/a\nb"}) {
    CHECK(refused({"--web.telemetry-path", path}).ends_with("is not a path such as /metrics"));
  }
  for (const char* path : {"/", "/targets", "/-/healthy", "/api/v1/x", "/assets/page.js"}) {
    CHECK(refused({"--web.telemetry-path", path}).ends_with("is a page of tacho's own; choose another path"));
  }
}
