#include "web/render.h"

#include <civetweb.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "web/encoding.h"

namespace tacho::web {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

void set(Headers& headers, const std::string& name, const std::string& value) {
  const auto found = std::ranges::find_if(headers, [&](const auto& each) { return same_name(each.first, name); });
  if (found == headers.end()) {
    headers.emplace_back(name, value);
  } else {
    found->second = value;
  }
}

bool has(const Headers& headers, std::string_view name) {
  return std::ranges::any_of(headers, [&](const auto& each) { return same_name(each.first, name); });
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
}

bool may_have_body(int status) {
  return status >= 200 && status != 204 && status != 304;
}

Rendered finish(const Response& response, const Headers& more, std::shared_ptr<const Pieces> body,
                const RenderOptions& options) {
  Headers headers{{"Date", http_date(options.now)},
                  {"Content-Type", response.content_type.empty() ? "application/octet-stream" : response.content_type},
                  {"X-Content-Type-Options", "nosniff"},
                  {"Cross-Origin-Resource-Policy", "same-origin"}};
  for (const auto& [name, value] : options.headers) {
    set(headers, name, value);
  }
  for (const auto& [name, value] : response.headers) {
    set(headers, name, value);
  }
  for (const auto& [name, value] : more) {
    set(headers, name, value);
  }
  const std::size_t size = body ? size_of(*body) : 0;
  if (may_have_body(response.status)) {
    set(headers, "Content-Length", std::to_string(size));
  }
  set(headers, "Connection", "close");

  Rendered rendered{.head = fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason_phrase(response.status)),
                    .body = {}};
  for (auto& [name, value] : headers) {
    std::ranges::replace_if(value, is_control, ' ');
    if (!value.empty()) {
      rendered.head += fmt::format("{}: {}\r\n", name, value);
    }
  }
  rendered.head += "\r\n";
  if (!options.head_only && may_have_body(response.status) && size > 0) {
    rendered.body = std::move(body);
  }
  return rendered;
}

}  // namespace

std::string_view reason_phrase(int status) {
  const char* const text = mg_get_response_code_text(nullptr, status);
  return text == nullptr ? "Status" : text;
}

std::string http_date(std::chrono::system_clock::time_point time) {
  static constexpr std::array<const char*, 7> kDays{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array<const char*, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - day));
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays.at(std::chrono::weekday(day).c_encoding()),
                     static_cast<unsigned>(date.day()), kMonths.at(static_cast<unsigned>(date.month()) - 1),
                     static_cast<int>(date.year()), clock.hours().count(), clock.minutes().count(),
                     clock.seconds().count());
}

std::size_t size_of(const Pieces& pieces) {
  std::size_t sum = 0;
  for (const Piece& piece : pieces) {
    sum += piece.size();
  }
  return sum;
}

Rendered render(Response response, const RenderOptions& options) {
  Headers more;
  if (response.body.size() >= kMinCompressed && !has(response.headers, "Content-Encoding")) {
    more.emplace_back("Vary", "Accept-Encoding");
    auto compressed = options.gzip ? gzip(response.body) : std::nullopt;
    if (compressed) {
      response.body = std::move(*compressed);
      more.emplace_back("Content-Encoding", "gzip");
    }
  }
  auto body = std::make_shared<Pieces>();
  body->emplace_back(std::move(response.body));
  return finish(response, more, std::move(body), options);
}

Rendered render(const Page& page, const RenderOptions& options) {
  Headers more{{"Vary", "Accept-Encoding"}};
  const bool zipped = page.zipped && options.gzip;
  if (zipped) {
    more.emplace_back("Content-Encoding", "gzip");
  }
  return finish({.content_type = page.content_type, .headers = {}, .body = {}}, more, zipped ? page.zipped : page.plain,
                options);
}

}  // namespace tacho::web
