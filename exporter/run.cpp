#include "run.h"

#include <fcntl.h>
#include <malloc.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <iostream>
#include <new>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "base/descriptors.h"
#include "cli.h"
#include "load_config.h"
#include "top/top.h"

namespace {

/// What a configuration is refused for: bare lines for people and editors; whoever asked for JSON reads nothing else.
void tell(const tacho::Cli& cli, spdlog::level::level_enum level, const std::string& text) {
  if (cli.log_format == tacho::LogFormat::json) {
    spdlog::log(level, "{}", text);
  } else {
    std::cerr << text << "\n";
  }
}

int run(const tacho::Cli& cli, tacho::MoreRoutes more_routes) {
  using Command = tacho::Cli::Command;
  if (cli.command == Command::check) {
    return tacho::run_check(cli, std::cout, std::cerr);
  }
  if (cli.command == Command::top || cli.command == Command::slow || cli.command == Command::why) {
    const auto shown = cli.command == Command::top    ? tacho::top::run(cli.top, std::cout)
                       : cli.command == Command::slow ? tacho::top::show_slowest(cli.top, std::cout)
                                                      : tacho::top::show_why(cli.top, std::cout);
    if (!shown) {
      std::cerr << "tacho: " << shown.error().message << "\n";
    }
    return shown ? tacho::kExitOk : shown.error().code == EINVAL ? tacho::kExitUsage : tacho::kExitFailed;
  }
  tacho::init_log(cli.log_level, cli.log_format);
  if (cli.command == Command::health) {
    return tacho::health(cli);
  }
  tacho::config::Config config;
  if (!cli.config_file.empty()) {
    tacho::config::Loaded loaded = tacho::load_config(cli.config_file);
    for (const auto& warning : loaded.warnings) {
      tell(cli, spdlog::level::warn, tacho::config::format(warning, loaded.file_name));
    }
    for (const auto& error : loaded.errors) {
      tell(cli, spdlog::level::err, tacho::config::format(error, loaded.file_name));
    }
    if (!loaded.errors.empty()) {
      return tacho::kExitUsage;
    }
    config = std::move(loaded.config);
  }
  try {
    switch (cli.command) {
      case Command::once:
        return tacho::once(cli, config);
      case Command::plan:
        return tacho::plan(cli, config);
      default:
        return tacho::serve(cli, config, std::move(more_routes));
    }
  } catch (const std::bad_alloc&) {
    spdlog::error("out of memory: raise what limits addresses (ulimit -v), or the memory of the cgroup (memory.max)");
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) {
      throw;
    }
    spdlog::error(
        "no thread can be started ({}): raise what limits threads (ulimit -u, TasksMax=) or addresses (ulimit -v)",
        error.what());
  }
  return tacho::kExitFailed;
}

/// What a command ends with, which has failed if not all that it says could be written.
int written(int code) {
  if (std::cout.flush()) {
    return code;
  }
  std::cerr << "tacho: not all could be written to the standard output: is the disk full?\n";
  return code == tacho::kExitOk ? tacho::kExitFailed : code;
}

/// A descriptor below 3 that is closed would be the next file's or map's, which would then get the log.
void open_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) < 0) {
      ::open("/dev/null", O_RDWR);  // takes the lowest number that is free
    }
  }
}

}  // namespace

namespace tacho {

int run_program(int argc, char** argv, MoreRoutes more_routes) {
  open_standard_descriptors();
  // Any thread of the web server may write the page, 28 MB at 1000 targets: with an arena for each, as many pages stay
  // resident as there are threads.
  mallopt(M_ARENA_MAX, 1);
  // The views of 1000 targets are blocks of 20 MB. Without a threshold of ours each that is given back raises malloc's
  // own (mallopt(3)), until the heap keeps 40 MB of what is free.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  tacho::occupy_standard_descriptors();
  try {
    const auto parsed = tacho::parse_cli(std::span<const char* const>(argv, static_cast<std::size_t>(argc)));
    if (const auto* exit = std::get_if<tacho::ExitNow>(&parsed)) {
      std::cout << exit->out;
      std::cerr << exit->err;
      return written(exit->code);
    }
    return written(run(std::get<tacho::Cli>(parsed), std::move(more_routes)));
  } catch (const std::exception& error) {
    std::cerr << "tacho: " << error.what() << "\n";
    return tacho::kExitFailed;
  }
}

}  // namespace tacho
