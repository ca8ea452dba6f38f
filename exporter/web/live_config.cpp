#include "web/live_config.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace tacho::web {

Result<std::unique_ptr<LiveConfig>> LiveConfig::load(const std::filesystem::path& file, const Files& files) {
  std::unique_ptr<LiveConfig> live(new LiveConfig(file, files));
  if (file.empty()) {
    live->policy_ = std::make_shared<Policy>();
    return live;
  }
  auto loaded = live->read();
  if (!loaded) {
    return std::unexpected(loaded.error());
  }
  live->tls_ = loaded->ssl != nullptr;
  live->adopt(std::move(*loaded));
  return live;
}

std::shared_ptr<const Policy> LiveConfig::policy() const {
  const std::lock_guard lock(mutex_);
  return policy_;
}

SslContext LiveConfig::refresh() {
  const bool changed = std::ranges::any_of(watched_, [this](const Watched& each) { return look(each.path) != each; });
  if (!changed) {
    return std::move(new_ssl_);
  }
  auto loaded = read();
  if (loaded && (loaded->ssl != nullptr) != tls_) {
    loaded = fail(file_.string() + ": TLS cannot be switched on or off while running: restart tacho");
  }
  if (!loaded) {
    spdlog::error("web configuration not reloaded, the one before stays: {}", loaded.error().message);
    return std::move(new_ssl_);
  }
  spdlog::info("web configuration reloaded from {}", file_.string());
  adopt(std::move(*loaded));
  return std::move(new_ssl_);
}

/// Looks at each file before reading it, so that a change in between is seen; also where reading fails, so that it is
/// tried again once one of them changes.
Result<LiveConfig::Loaded> LiveConfig::read() {
  watched_ = {look(file_)};
  auto config = config::read_web_config(file_, files_.reader());
  if (!config) {
    return std::unexpected(config.error());
  }
  Loaded loaded{.config = std::move(*config), .ssl = nullptr};
  if (!loaded.config.tls) {
    return loaded;
  }
  const config::TlsServer& tls = *loaded.config.tls;
  for (const config::Pem* pem : {&tls.certificate, &tls.key, &tls.client_ca}) {
    if (!pem->file.empty()) {
      watched_.push_back(look(pem->file));
    }
  }
  auto ssl = make_ssl_context(tls, files_);
  if (!ssl) {
    return std::unexpected(ssl.error().within(file_.string()));
  }
  loaded.ssl = std::move(*ssl);
  return loaded;
}

void LiveConfig::adopt(Loaded loaded) {
  for (const std::string& warning : loaded.config.warnings) {
    spdlog::warn("{}", warning);
  }
  auto policy = std::make_shared<Policy>();
  policy->headers = std::move(loaded.config.http.headers);
  policy->users = std::move(loaded.config.users);
  const auto& limit = loaded.config.rate_limit;
  const bool limited = limit && limit->interval > config::Duration::zero();
  if (limited && rate_limit_ && limit->interval == rate_limit_->interval && limit->burst == rate_limit_->burst) {
    policy->limiter = this->policy()->limiter;  // a reload grants no tokens
  } else if (limited) {
    policy->limiter = std::make_shared<RateLimiter>(*limit, RateLimiter::Clock::now());
  }
  rate_limit_ = limit;
  new_ssl_ = std::move(loaded.ssl);
  const std::lock_guard lock(mutex_);
  policy_ = std::move(policy);
}

LiveConfig::Watched LiveConfig::look(const std::filesystem::path& path) const {
  return {.path = path, .state = files_.state(path)};
}

}  // namespace tacho::web
