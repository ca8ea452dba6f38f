// --web.config.file: TLS, users, headers and limits, as somebody has written them.
#include <string>

#include "config/web_config_file.h"
#include "fuzzer.h"

using namespace tacho;
using fuzz::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto config = config::parse_web_config(fuzz::text_of(data, size), "/etc/tacho/web.yml");
  if (!config) {
    require(config.error().message.starts_with("/etc/tacho/web.yml:"), "an error names its place");
    return 0;
  }
  for (const auto& [name, hash] : config->users) {
    require(!name.empty() && name.find(':') == std::string::npos, "a user can log in");
    require(hash.starts_with("$2"), "a hash is bcrypt's");
  }
  if (config->tls) {
    require(config->tls->certificate.given() && config->tls->key.given(), "TLS has a certificate and a key");
    require(config->tls->min_version <= config->tls->max_version, "versions are a range");
  }
  for (const auto& [name, value] : config->http.headers) {
    require((name + value).find_first_of("\r\n") == std::string::npos, "a header is one line");
  }
  return 0;
}
