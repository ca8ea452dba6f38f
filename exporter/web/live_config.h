#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/web_config_file.h"
#include "web/files.h"
#include "web/rate_limiter.h"
#include "web/tls.h"

namespace tacho::web {

/// The rules of the web configuration for requests; immutable once in use.
struct Policy {
  std::map<std::string, std::string> headers;
  std::map<std::string, std::string> users;
  std::shared_ptr<RateLimiter> limiter;  ///< none: no limit
};

/// The web configuration file and the certificates it names, read again when one of them changes on disk.
class LiveConfig {
 public:
  /// An empty path: plain HTTP for everyone. Logs the file's warnings. `files` must outlive this.
  static Result<std::unique_ptr<LiveConfig>> load(const std::filesystem::path& file,
                                                  const Files& files = Files::on_disk());

  [[nodiscard]] bool tls() const { return tls_; }

  /// Thread-safe.
  [[nodiscard]] std::shared_ptr<const Policy> policy() const;

  /// Checks the files (a few stat calls), and reads them again when they have changed. Errors are logged, and the
  /// previous content stays in use. Returns the TLS context for new connections if there is a new one, the first time
  /// included. One thread at a time.
  SslContext refresh();

 private:
  struct Watched {
    std::filesystem::path path;
    std::vector<std::int64_t> state;  ///< values of `stat` that change with the content; empty: absent

    bool operator==(const Watched&) const = default;
  };
  struct Loaded {
    config::WebConfig config;
    SslContext ssl;
  };

  LiveConfig(std::filesystem::path file, const Files& files) : file_(std::move(file)), files_(files) {}
  Result<Loaded> read();
  void adopt(Loaded loaded);
  [[nodiscard]] Watched look(const std::filesystem::path& path) const;

  const std::filesystem::path file_;
  const Files& files_;
  bool tls_ = false;
  SslContext new_ssl_;
  std::vector<Watched> watched_;
  std::optional<config::RateLimit> rate_limit_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Policy> policy_;
};

}  // namespace tacho::web
