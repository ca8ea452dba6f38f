#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/log.h"
#include "top/options.h"

namespace tacho {

/// Exit codes of every command, as --help lists them.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  ///< nothing can be observed, served or shown
inline constexpr int kExitUsage = 2;   ///< bad flags or a bad configuration

/// The options of the command line; the defaults are those of a bare `tacho`.
struct Cli {
  enum class Command : std::uint8_t { serve, check, plan, once, top, slow, why, health };

  Command command = Command::serve;
  std::string config_file;                             ///< empty: the default configuration
  std::vector<std::string> listen_addresses{":9435"};  ///< as given; the web server understands them
  std::string web_config_file;                         ///< empty: plain HTTP, no authentication
  std::string telemetry_path = "/metrics";
  bool enable_lifecycle = false;  ///< POST /-/reload from the network, without authentication
  LogLevel log_level = LogLevel::info;
  LogFormat log_format = LogFormat::text;
  std::string procfs = "/proc";
  std::string log_directory = "/var/log";  ///< of the kubelet
  std::string lib_directory = "/var/lib";  ///< of podman and Docker
  std::string cgroupfs;                    ///< empty: to be found in procfs's mountinfo
  std::string btf_file;                    ///< empty: the kernel's own
  std::string node;                        ///< name of this machine in Kubernetes; empty: unknown
  TopOptions top;
};

/// The program ends with this code, after printing these texts.
struct ExitNow {
  int code = kExitOk;
  std::string out;  ///< for stdout, with its last line break
  std::string err;  ///< for stderr
};

/// `arguments` are those of main(), the program's name first. Prints nothing and ends nothing.
std::variant<Cli, ExitNow> parse_cli(std::span<const char* const> arguments);

/// `tacho check`: loads the files that --config.file and --web.config.file name. Prints all errors in them to `err`,
/// and one line for each valid file to `out`. Needs no privilege. Returns kExitOk or kExitUsage.
int run_check(const Cli& cli, std::ostream& out, std::ostream& err);

}  // namespace tacho
