#include "web/bundle.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/regular_file.h"
#include "web/tls.h"

namespace tacho::web {
namespace {

constexpr std::size_t kMaxFile = std::size_t{4} << 20;

void put(std::string& out, std::string_view field) {
  const std::uint64_t size = field.size();
  out.append(reinterpret_cast<const char*>(&size), sizeof(size));
  out += field;
}

std::optional<std::string> take(std::string_view& bytes) {
  std::uint64_t size = 0;
  if (bytes.size() < sizeof(size)) {
    return std::nullopt;
  }
  std::memcpy(&size, bytes.data(), sizeof(size));
  bytes.remove_prefix(sizeof(size));
  if (bytes.size() < size) {
    return std::nullopt;
  }
  std::string field(bytes.substr(0, size));
  bytes.remove_prefix(size);
  return field;
}

Bundle::Entry entry_of(const std::filesystem::path& path) {
  Bundle::Entry entry{.path = path, .error = {}, .text = {}, .state = Files::on_disk().state(path)};
  auto text = read_regular_file(path, kMaxFile);
  if (text) {
    entry.text = std::move(*text);
  } else {
    entry.error = text.error();
  }
  return entry;
}

/// All of them as one file.
Bundle::Entry system_authorities() {
  Bundle::Entry entry = entry_of(system_authorities_file());
  if (entry.text) {
    return entry;
  }
  std::string all;
  std::error_code error;
  for (std::filesystem::directory_iterator each(system_authorities_directory(), error), end; !error && each != end;
       each.increment(error)) {
    if (const auto text = read_regular_file(each->path(), kMaxFile); text && all.size() < kMaxFile) {
      all += *text + "\n";
    }
  }
  entry.text = std::move(all);
  return entry;
}

}  // namespace

Bundle Bundle::read(const std::filesystem::path& file) {
  Bundle bundle;
  bundle.entries_.push_back(entry_of(file));
  const auto& text = bundle.entries_.front().text;
  if (!text) {
    return bundle;
  }
  const auto config = config::parse_web_config(*text, file);
  if (!config || !config->tls) {
    return bundle;
  }
  const config::TlsServer& tls = *config->tls;
  for (const config::Pem* pem : {&tls.certificate, &tls.key, &tls.client_ca}) {
    if (!pem->file.empty()) {
      bundle.entries_.push_back(entry_of(pem->file));
    }
  }
  if (tls.client_auth != config::ClientAuth::none && !tls.client_ca.given()) {
    bundle.entries_.push_back(system_authorities());
  }
  return bundle;
}

std::string Bundle::bytes() const {
  std::string out;
  for (const Entry& entry : entries_) {
    put(out, entry.path);
    put(out, entry.error.message);
    put(out, std::to_string(entry.error.code));
    put(out, entry.text ? "+" + *entry.text : "");
  }
  return out;
}

std::optional<Bundle> Bundle::parse(std::string_view bytes) {
  Bundle bundle;
  while (!bytes.empty()) {
    auto path = take(bytes);
    auto message = take(bytes);
    const auto code = take(bytes);
    auto text = take(bytes);
    if (!path || !message || !code || !text) {
      return std::nullopt;
    }
    bundle.entries_.push_back({.path = std::move(*path),
                               .error = {.message = std::move(*message), .code = std::atoi(code->c_str())},
                               .text = text->empty() ? std::nullopt : std::optional(text->substr(1))});
  }
  return bundle;
}

const Bundle::Entry* Bundle::find(const std::filesystem::path& path) const {
  const auto found = std::ranges::find(entries_, path.string(), &Entry::path);
  return found == entries_.end() ? nullptr : &*found;
}

void BundledFiles::set(Bundle bundle) {
  const std::lock_guard lock(mutex_);
  bundle_ = std::move(bundle);
  ++number_;
}

std::vector<std::int64_t> BundledFiles::state(const std::filesystem::path& /*path*/) const {
  const std::lock_guard lock(mutex_);
  return {number_};
}

Result<std::string> BundledFiles::read(const std::filesystem::path& path, std::size_t limit) const {
  const std::lock_guard lock(mutex_);
  const Bundle::Entry* const entry = bundle_.find(path);
  if (entry == nullptr) {
    return fail_errno("cannot open the file", ENOENT);
  }
  if (!entry->text) {
    return std::unexpected(entry->error);
  }
  return entry->text->substr(0, limit + 1);
}

Result<BundleSource> BundleSource::open(std::filesystem::path file) {
  BundleSource source(std::move(file));
  if (auto done = source.read(); !done) {
    return std::unexpected(done.error());
  }
  return source;
}

bool BundleSource::changed() const {
  return std::ranges::any_of(states_,
                             [](const auto& each) { return Files::on_disk().state(each.first) != each.second; });
}

bool BundleSource::refresh() {
  if (!changed()) {
    return false;
  }
  const auto done = read();
  if (!done) {
    spdlog::error("web configuration not reloaded, the one before stays: {}", done.error().message);
  }
  return done.has_value();
}

/// Looks at each file before reading it, so that a change in between is seen; also where reading fails, so that it is
/// tried again once one of them changes.
Result<void> BundleSource::read() {
  BundledFiles files;
  Bundle fresh = Bundle::read(file_);
  States states;
  for (const Bundle::Entry& entry : fresh.entries()) {
    states.try_emplace(entry.path, entry.state);
  }
  states_ = std::move(states);
  files.set(fresh);
  const auto config = config::read_web_config(file_, files.reader());
  if (!config) {
    return std::unexpected(config.error());
  }
  if (config->tls) {
    if (const auto context = make_ssl_context(*config->tls, files); !context) {
      return std::unexpected(context.error().within(file_.string()));
    }
  }
  if (known_ && config->tls.has_value() != tls_) {
    return fail(file_.string() + ": TLS cannot be switched on or off while running: restart tacho");
  }
  tls_ = config->tls.has_value();
  known_ = true;
  bundle_ = std::move(fresh);
  return {};
}

}  // namespace tacho::web
