#include "cli.h"

#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "base/version.h"
#include "boundary/question.h"
#include "config/diagnostic.h"
#include "config/suggest.h"
#include "web/listener.h"

namespace tacho {
namespace {

constexpr std::string_view kFooter = R"(Exit codes:
  0  ok
  1  nothing can be observed, served or shown
  2  bad usage or a bad configuration)";

struct CommandName {
  std::string_view name;
  Cli::Command command;
  std::string_view help;
};

constexpr std::array<CommandName, 8> kCommands{{
    {"serve", Cli::Command::serve, "Observe and serve metrics; the default"},
    {"check", Cli::Command::check, "Check the configuration; needs no privilege"},
    {"plan", Cli::Command::plan, "Show hooks, matched targets and series counts; attaches nothing"},
    {"once", Cli::Command::once, "Write one exposition to stdout"},
    {"top", Cli::Command::top, "Show the targets of a running tacho in the terminal"},
    {"slow", Cli::Command::slow, "Show the slowest requests of a running tacho's targets, and what they waited for"},
    {"why", Cli::Command::why, "Say what the requests of a running tacho's targets wait for, and what has changed"},
    {"health", Cli::Command::health, "Ask the tacho that serves at the address given whether it is well"},
}};

const std::map<std::string, LogLevel> kLevels{
    {"debug", LogLevel::debug}, {"info", LogLevel::info}, {"warn", LogLevel::warn}, {"error", LogLevel::error}};
const std::map<std::string, LogFormat> kFormats{{"text", LogFormat::text}, {"json", LogFormat::json}};

ExitNow refuse(const std::string& message) {
  return {.code = kExitUsage, .out = {}, .err = "tacho: " + message + "\nSee tacho --help.\n"};
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  const auto meant = config::nearest(word, candidates);
  return meant.empty() ? "" : " (did you mean " + std::string(meant) + "?)";
}

/// CLI11 takes the argument after "--flag=" for the flag's value.
std::optional<ExitNow> find_empty_value(std::span<const char* const> arguments) {
  for (const std::string_view argument : arguments.subspan(1)) {
    if (argument == "--") {
      break;
    }
    if (argument.starts_with("--") && argument.find('=') + 1 == argument.size()) {
      return refuse(printable(argument) + " has no value");
    }
  }
  return std::nullopt;
}

/// In groups of their own in the program's help.
void add_client_options(CLI::App& top, TopOptions& options) {
  top.add_option("--url", options.url, "http://HOST:PORT, https://USER@HOST or unix:PATH of a running tacho")
      ->type_name("URL")
      ->capture_default_str();
  top.add_option("--password-file", options.password_file, "Holds the password of the user in the URL")
      ->type_name("FILE");
  top.add_option("--ca-file", options.ca_file, "Certificates to trust (PEM); none: the system's")->type_name("FILE");
  top.add_flag("--json", options.json, "Print the data and end");
}

void add_top_options(CLI::App& top, TopOptions& options) {
  add_client_options(top, options);
  top.add_option("--sort", options.sort, boundary::sort_key_names())->type_name("COLUMN")->capture_default_str();
  top.add_option("--filter", options.filter, "Only targets with these words in name, labels or cgroup")
      ->type_name("WORDS");
  top.add_flag("--once", options.once, "Print the table and end");
}

/// Of commands that print once about some targets.
void add_target_options(CLI::App& command, TopOptions& options) {
  command.add_option("TARGET", options.filter, "Only targets with these words in name, labels or cgroup")
      ->type_name("WORDS");
  add_client_options(command, options);
}

std::string help_of(const CLI::App& app) {
  const std::string all = app.help();
  const std::size_t footer = all.find(kFooter);
  std::string text = all.substr(0, footer);
  for (const char* command : {"top", "slow", "why"}) {
    const std::string own = app.get_subcommand(command)->help();
    const std::size_t options = own.find("Options:") + std::string_view("Options:").size();
    text += fmt::format("Options of {}:{}\n", command, own.substr(options));
  }
  return text + all.substr(footer);
}

std::optional<ExitNow> check_unknown(const CLI::App& app) {
  const std::vector<std::string> unknown = app.remaining(true);
  if (unknown.empty()) {
    return std::nullopt;
  }
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_options()) {
    flags.push_back("--" + option->get_single_name());
  }
  for (const CLI::App* command : app.get_subcommands()) {
    for (const CLI::Option* option : command->get_options()) {
      flags.push_back("--" + option->get_single_name());
    }
  }
  const std::vector<std::string_view> flag_views(flags.begin(), flags.end());
  const auto flag =
      std::ranges::find_if(unknown, [](const std::string& word) { return word.starts_with('-') && word != "--"; });
  if (flag != unknown.end()) {
    const std::string name = flag->substr(0, flag->find('='));
    return refuse("unknown flag " + printable(name) + did_you_mean(name, flag_views));
  }
  const std::string& word = unknown.front() == "--" ? unknown.back() : unknown.front();
  std::array<std::string_view, kCommands.size()> names;
  std::ranges::transform(kCommands, names.begin(), &CommandName::name);
  if (std::ranges::find(names, word) != names.end()) {
    return refuse("more than one command: " + word);
  }
  return refuse("unknown command " + printable(word) + did_you_mean(word, names));
}

std::optional<ExitNow> check_values(const Cli& cli) {
  const std::string_view path = cli.telemetry_path;
  if (!path.starts_with('/') || path.find_first_of("?#% ") != std::string_view::npos || printable(path) != path) {
    return refuse("--web.telemetry-path: " + printable(path) + " is not a path such as /metrics");
  }
  if (path == "/" || path == "/targets" || path.starts_with("/-/") || path.starts_with("/api/") ||
      path.starts_with("/assets/")) {
    return refuse("--web.telemetry-path: " + std::string(path) + " is a page of tacho's own; choose another path");
  }
  for (const std::string& address : cli.listen_addresses) {
    if (const auto parsed = web::ListenAddress::parse(address); !parsed) {
      return refuse("--web.listen-address: " + printable(parsed.error().message));
    }
  }
  return std::nullopt;
}

}  // namespace

std::variant<Cli, ExitNow> parse_cli(std::span<const char* const> arguments) {
  Cli cli;
  std::string level = "info";
  std::string format = "text";
  CLI::App app{"tacho counts from the kernel what every server on this machine answers, and how long it takes.",
               "tacho"};
  app.footer(std::string(kFooter));
  app.set_help_flag("-h,--help", "Print this text");
  app.set_version_flag("--version", "tacho " + std::string(version()), "Print the version");
  app.allow_extras();
  app.require_subcommand(0, 1);
  app.fallthrough();
  app.add_option("--config.file", cli.config_file, "Configuration (YAML); none: watch every server")->type_name("FILE");
  app.add_option("--web.listen-address", cli.listen_addresses, "Where to serve; may be repeated")
      ->type_name("ADDRESS")
      ->allow_extra_args(false)
      ->capture_default_str();
  app.add_option("--web.config.file", cli.web_config_file,
                 "TLS and authentication, as in the Prometheus exporter-toolkit")
      ->type_name("FILE");
  app.add_option("--web.telemetry-path", cli.telemetry_path, "Path of the metrics")
      ->type_name("PATH")
      ->capture_default_str();
  app.add_flag("--web.enable-lifecycle", cli.enable_lifecycle,
               "Let everybody reload by POST /-/reload, not only this machine and authenticated users");
  app.add_option("--log.level", level, "debug, info, warn or error")
      ->type_name("LEVEL")
      ->check(CLI::IsMember(kLevels).description(""))
      ->capture_default_str();
  app.add_option("--log.format", format, "text or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember(kFormats).description(""))
      ->capture_default_str();
  app.add_option("--path.procfs", cli.procfs, "Where procfs is mounted")->type_name("DIR")->capture_default_str();
  app.add_option("--path.cgroupfs", cli.cgroupfs, "Where cgroup v2 is mounted; none: found in mountinfo")
      ->type_name("DIR");
  app.add_option("--path.log", cli.log_directory, "Where containers/ of the kubelet is, for the names of pods")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_option("--path.lib", cli.lib_directory, "Where podman and Docker keep the names of containers")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_option("--btf.path", cli.btf_file, "BTF of the running kernel; none: /sys/kernel/btf/vmlinux")
      ->type_name("FILE");
  app.add_option("--node.name", cli.node, "What Kubernetes calls this machine, for tacho_target_info")
      ->type_name("NAME")
      ->envname("NODE_NAME");
  for (const auto& [name, command, help] : kCommands) {
    auto* subcommand = app.add_subcommand(std::string(name), std::string(help));
    subcommand->set_help_flag();  // --help after a command falls through to the program's
    if (command == Cli::Command::top) {
      add_top_options(*subcommand, cli.top);
    } else if (command == Cli::Command::slow || command == Cli::Command::why) {
      add_target_options(*subcommand, cli.top);
    }
    subcommand->allow_extras();
    subcommand->callback([&cli, command] { cli.command = command; });
  }

  const std::string help = help_of(app);  // after parsing it would be the command's, which has no flags of its own
  if (auto stop = find_empty_value(arguments)) {
    return *std::move(stop);
  }
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::CallForHelp&) {
    return ExitNow{.code = kExitOk, .out = help, .err = {}};
  } catch (const CLI::CallForVersion& version_text) {
    return ExitNow{.code = kExitOk, .out = std::string(version_text.what()) + '\n', .err = {}};
  } catch (const CLI::ParseError& error) {
    return refuse(printable(error.what()));
  }
  if (auto stop = check_unknown(app)) {
    return *std::move(stop);
  }
  if (auto stop = check_values(cli)) {
    return *std::move(stop);
  }
  cli.log_level = kLevels.at(level);
  cli.log_format = kFormats.at(format);
  return cli;
}

}  // namespace tacho
