#include <ostream>

#include "cli.h"
#include "config/web_config_file.h"
#include "load_config.h"
#include "web/tls.h"

namespace tacho {
namespace {

bool check_config(const std::string& path, std::ostream& out, std::ostream& err) {
  const auto loaded = load_config(path);
  for (const auto& error : loaded.errors) {
    err << format(error, loaded.file_name) << '\n';
  }
  for (const auto& warning : loaded.warnings) {
    err << format(warning, loaded.file_name) << '\n';
  }
  if (!loaded.errors.empty()) {
    return false;
  }
  const std::size_t targets = loaded.config.targets.size();
  out << path << ": ok, " << targets << (targets == 1 ? " target\n" : " targets\n");
  return true;
}

bool check_web_config(const std::string& path, std::ostream& out, std::ostream& err) {
  const auto web = config::read_web_config(path);
  if (!web) {
    err << web.error().message << '\n';
    return false;
  }
  for (const std::string& warning : web->warnings) {
    err << warning << '\n';
  }
  if (web->tls) {
    if (const auto context = web::make_ssl_context(*web->tls); !context) {
      err << path << ": error: " << context.error().message << '\n';
      return false;
    }
  }
  out << path << ": ok\n";
  return true;
}

}  // namespace

int run_check(const Cli& cli, std::ostream& out, std::ostream& err) {
  if (cli.config_file.empty() && cli.web_config_file.empty()) {
    err << "tacho: nothing to check: name a file with --config.file or --web.config.file\n";
    return kExitUsage;
  }
  bool good = true;
  if (!cli.config_file.empty()) {
    good = check_config(cli.config_file, out, err);
  }
  if (!cli.web_config_file.empty()) {
    good = check_web_config(cli.web_config_file, out, err) && good;
  }
  return good ? kExitOk : kExitUsage;
}

}  // namespace tacho
