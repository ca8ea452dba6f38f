#include "top/ask.h"

#include <spdlog/fmt/fmt.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string_view>
#include <utility>

#include "base/utf8.h"

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
  return Client::open(std::move(*url), {.ca_file = options.ca_file});
}

Result<About> ask_about(const TopOptions& options, std::string_view what, std::size_t most) {
  auto client = open_client(options);
  if (!client) {
    return std::unexpected(client.error());
  }
  About about{.targets = {}, .answer = {}, .url = (*client)->url().text()};
  const auto table = (*client)->get(table_path({.sort = scrape::SortKey::rate, .filter = options.filter}, most));
  if (!table) {
    return std::unexpected(table.error());
  }
  auto targets = parse_frame(*table);
  if (!targets) {
    return std::unexpected(targets.error().within(about.url));
  }
  if (targets->rows.empty()) {
    return fail(options.filter.empty() ? "there are no targets" : "no target matches " + printable(options.filter));
  }
  about.targets = std::move(*targets);
  std::string path = fmt::format("/api/v1/{}?ids=", what);
  for (const Row& row : about.targets.rows) {
    path += row.id + ",";
  }
  auto answer = (*client)->get(path);
  if (!answer) {
    return std::unexpected(answer.error());
  }
  about.answer = std::move(*answer);
  return about;
}

Result<void> write_json(const std::string& answer, const std::string& url, std::ostream& out) {
  const auto document = nlohmann::json::parse(answer, nullptr, false);
  if (document.is_discarded()) {
    return fail(url + ": the answer is no JSON");
  }
  out << document.dump(-1, ' ', true) << "\n";
  return finish(out);
}

void tell_of_more(const Frame& targets, std::ostream& out) {
  if (targets.matched > targets.rows.size()) {
    out << fmt::format("of the {} busiest targets; {} more match: name some\n", targets.rows.size(),
                       targets.matched - targets.rows.size());
  }
}

Result<void> finish(std::ostream& out) {
  out.flush();
  return out ? Result<void>{} : fail("the output cannot be written");
}

}  // namespace tacho::top
