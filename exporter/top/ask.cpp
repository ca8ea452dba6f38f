#include "top/ask.h"

#include <spdlog/fmt/fmt.h>

#include <fstream>
#include <string_view>
#include <utility>

namespace tacho::top {
namespace {

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace

std::string table_path(const Choice& choice, std::size_t limit) {
  return fmt::format("/api/v1/targets?sort={}&order={}&filter={}&limit={}", scrape::sort_key_name(choice.sort),
                     choice.descending ? "desc" : "asc", escape(choice.filter), limit);
}

Result<std::unique_ptr<Client>> open_client(const TopOptions& options) {
  auto url = parse_url(options.url);
  if (!url) {
    return std::unexpected(url.error());
  }
  if (!options.password_file.empty()) {
    std::ifstream file(options.password_file);
    if (!std::getline(file, url->password)) {
      return fail("--password-file: " + options.password_file + ": no line can be read from it");
    }
    if (url->user.empty()) {
      return fail("--password-file: whose password? --url names the user: http://USER@HOST:PORT");
    }
  }
  return Client::open(std::move(*url), options.ca_file);
}

}  // namespace tacho::top
