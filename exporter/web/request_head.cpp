#include "web/request_head.h"

#include <civetweb.h>

#include <algorithm>
#include <utility>

namespace tacho::web {
namespace {

constexpr int kBadRequest = 400;
constexpr int kLengthRequired = 411;
constexpr int kContentTooLarge = 413;
constexpr int kHeadTooLarge = 431;
constexpr int kVersionNotSupported = 505;

/// RFC 9110 §5.6.2.
bool is_token(std::string_view text) {
  static constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || kOthers.contains(c);
  });
}

/// Is there one that ends no line (RFC 9112 §2.2)?
bool has_bare_carriage_return(std::string_view line) {
  const std::size_t at = line.find('\r');
  return at != std::string_view::npos && at + 1 != line.size();
}

/// What civetweb's parser lets pass: lines that continue the one before, names with blanks, more headers than it keeps.
bool has_strict_lines(std::string_view head, std::size_t& headers) {
  headers = 0;
  std::size_t end = head.find('\n');
  if (has_bare_carriage_return(head.substr(0, end))) {
    return false;
  }
  while (end != std::string_view::npos) {
    const std::size_t at = end + 1;
    end = head.find('\n', at);
    const std::string_view line = head.substr(at, end - at);
    if (line.empty() || line == "\r") {
      return true;
    }
    if (has_bare_carriage_return(line) || !line.contains(':') || !is_token(line.substr(0, line.find(':')))) {
      return false;
    }
    ++headers;
  }
  return false;
}

std::size_t count(const Request& request, std::string_view name) {
  return static_cast<std::size_t>(
      std::ranges::count_if(request.headers, [name](const auto& each) { return same_name(each.first, name); }));
}

/// 0, or the status that refuses it.
int refuse_body(const Request& request) {
  const auto length = request.header("Content-Length");
  const bool digits = length && !length->empty() && length->find_first_not_of("0123456789") == std::string::npos;
  if (count(request, "Content-Length") > 1 || (length && !digits)) {
    return kBadRequest;
  }
  if (request.header("Transfer-Encoding")) {
    return length ? kBadRequest : kLengthRequired;
  }
  return length && length->find_first_not_of('0') != std::string::npos ? kContentTooLarge : 0;
}

/// The first header of that name; one is added if there is none.
std::string& value_of(Request& request, const char* name) {
  for (auto& [key, value] : request.headers) {
    if (same_name(key, name)) {
      return value;
    }
  }
  return request.headers.emplace_back(name, "").second;
}

/// "http://host/path" as "/path", whose host counts, whatever the header says (RFC 9112 §3.2.2); false: no form that a
/// server takes.
bool cut_target(std::string& target, Request& request) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (target.size() > scheme.size() && same_name(std::string_view(target).substr(0, scheme.size()), scheme)) {
      const std::size_t path = target.find_first_of("/?", scheme.size());
      if (path == scheme.size()) {
        return false;
      }
      value_of(request, "Host") = target.substr(scheme.size(), path - scheme.size());
      target = path == std::string::npos ? "/" : (target[path] == '?' ? "/" : "") + target.substr(path);
      return true;
    }
  }
  return target.starts_with('/') || target == "*";
}

}  // namespace

HeadCollector::State HeadCollector::add(std::string_view bytes) {
  if (text_.empty()) {
    const std::size_t first = std::min(bytes.find_first_not_of("\r\n"), bytes.size());
    begin_ += first;
    bytes.remove_prefix(first);
    if (begin_ >= kMaxRequestHead) {
      return State::too_large;
    }
  }
  bytes = bytes.substr(0, kMaxRequestHead - text_.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (c == '\n') {
      if (!in_line_) {
        text_ += bytes.substr(0, i + 1);
        return State::complete;
      }
      in_line_ = false;
      if (++lines_ > 1 + kMaxHeaders) {
        return State::too_large;
      }
    } else if (c != '\r') {
      in_line_ = true;
      const auto code = static_cast<unsigned char>(c);
      if ((code < ' ' && c != '\t') || code == 0x7f) {
        return State::malformed;
      }
    }
  }
  text_ += bytes;
  return text_.size() < kMaxRequestHead ? State::incomplete : State::too_large;
}

std::variant<Request, int> parse_request(std::string head) {
  std::size_t headers = 0;
  if (!has_strict_lines(head, headers)) {
    return kBadRequest;
  }
  if (headers > kMaxHeaders) {
    return kHeadTooLarge;
  }
  std::ranges::replace(head, '\t', ' ');  // allowed in values, and unknown to civetweb
  mg_request_info info{};
  // Parses in place: the texts in `info` are in `head`.
  if (mg_parse_request_head(head.data(), static_cast<int>(head.size()), &info) <= 0) {
    return kBadRequest;
  }
  const std::string_view version = info.http_version;
  if (version != "1.1" && version != "1.0") {
    return kVersionNotSupported;
  }
  Request request{.method = info.request_method, .path = {}, .query = {}, .remote = {}, .headers = {}};
  for (int i = 0; i < info.num_headers; ++i) {
    const mg_header& header = info.http_headers[i];
    std::string value = header.value;
    value.erase(value.find_last_not_of(" \t") + 1);
    request.headers.emplace_back(header.name, std::move(value));
  }
  std::string target = info.request_uri;
  const std::size_t hosts = count(request, "Host");
  if (!cut_target(target, request) || hosts > 1 || (hosts == 0 && version == "1.1")) {
    return kBadRequest;
  }
  if (request.headers.size() > kMaxHeaders) {  // with the host of its target
    return kHeadTooLarge;
  }
  if (const int status = refuse_body(request); status != 0) {
    return status;
  }
  const std::size_t question = target.find('?');
  request.path = target.substr(0, question);
  request.query = question == std::string::npos ? "" : target.substr(question + 1);
  return request;
}

}  // namespace tacho::web
