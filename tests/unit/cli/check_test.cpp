#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "cli.h"

namespace {

/// A file of the test's own, removed at the end.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& text)
      : path_(std::filesystem::temp_directory_path() / ("tacho-" + std::to_string(::getpid()) + '-' + name)) {
    std::ofstream(path_) << text;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove(path_); }

  [[nodiscard]] std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct Outcome {
  int code = 0;
  std::string out;
  std::string err;
};

Outcome check(const std::string& config, const std::string& web = {}) {
  tacho::Cli cli;
  cli.config_file = config;
  cli.web_config_file = web;
  std::ostringstream out;
  std::ostringstream err;
  const int code = tacho::run_check(cli, out, err);
  return {.code = code, .out = out.str(), .err = err.str()};
}

}  // namespace

TEST_CASE("check says ok in one line") {
  const TemporaryFile file("good.yaml", "targets: [{name: web, cgroup: /web}]\n");
  const auto result = check(file.path());
  CHECK(result.code == tacho::kExitOk);
  CHECK(result.out == file.path() + ": ok, 1 target\n");
  CHECK(result.err.empty());
}

TEST_CASE("check prints every error with its place and ends with 2") {
  const TemporaryFile file("bad.yaml", "windw: 10s\nidle_limit: 5\n");
  const auto result = check(file.path());
  CHECK(result.code == tacho::kExitUsage);
  CHECK(result.out.empty());
  CHECK(result.err == file.path() + ":1:1: error: unknown key 'windw' (did you mean 'window'?)\n" + file.path() +
                          ":2:13: error: idle_limit: '5' has no unit (write 5s for seconds)\n");
}

TEST_CASE("check prints warnings and still ends with 0") {
  const TemporaryFile file("warn.yaml", "discovery: {listeners: never}\n");
  const auto result = check(file.path());
  CHECK(result.code == tacho::kExitOk);
  CHECK(result.out == file.path() + ": ok, 0 targets\n");
  CHECK(result.err.starts_with(file.path() + ":1:12: warning: nothing will be watched"));
}

TEST_CASE("check of a missing file names the remedy") {
  const auto result = check("/nonexistent/tacho.yaml");
  CHECK(result.code == tacho::kExitUsage);
  CHECK(result.err ==
        "/nonexistent/tacho.yaml: error: cannot open the file: No such file or directory (check the path after "
        "--config.file; a relative one starts at the working directory)\n");
}

TEST_CASE("check without a file is a mistake") {
  const auto result = check("");
  CHECK(result.code == tacho::kExitUsage);
  CHECK(result.err.find("--config.file") != std::string::npos);
}

TEST_CASE("check looks at the web configuration too") {
  const TemporaryFile good("web-good.yaml", "http_server_config: {http2: true}\n");
  const TemporaryFile bad("web-bad.yaml", "http_server_cnfig: {}\n");
  CHECK(check("", good.path()).code == tacho::kExitOk);
  const TemporaryFile config("good2.yaml", "");
  const auto result = check(config.path(), bad.path());
  CHECK(result.code == tacho::kExitUsage);
  CHECK(result.out == config.path() + ": ok, 0 targets\n");
  CHECK(result.err.starts_with(bad.path() + ":1:1: error: "));
}

TEST_CASE("check reads the certificates that a web configuration names") {
  const TemporaryFile web("web.yml",
                          "tls_server_config: {cert_file: /nonexistent/a.crt, key_file: /nonexistent/a.key}\n");
  const auto result = check({}, web.path());
  CHECK(result.code == tacho::kExitUsage);
  CHECK(result.out.empty());
  CHECK(result.err.find("/nonexistent/a.crt") != std::string::npos);
}
