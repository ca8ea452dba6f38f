#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "web/files.h"

namespace tacho::web {

/// The web configuration and the files that it names, as they were read: the process that serves has no files. A file
/// that could not be read is there with the reason.
class Bundle {
 public:
  struct Entry {
    std::string path;
    Error error;  ///< if there is no text
    std::optional<std::string> text;
    std::vector<std::int64_t> state = {};  ///< taken before the file was read; not passed on
  };

  /// Reads from disk.
  static Bundle read(const std::filesystem::path& file);

  /// As bytes, and back; nothing if the bytes are not a bundle.
  [[nodiscard]] std::string bytes() const;
  static std::optional<Bundle> parse(std::string_view bytes);

  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] const Entry* find(const std::filesystem::path& path) const;

 private:
  std::vector<Entry> entries_;
};

/// Files of the bundle that came last. Thread-safe.
class BundledFiles final : public Files {
 public:
  void set(Bundle bundle);
  [[nodiscard]] std::vector<std::int64_t> state(const std::filesystem::path& path) const override;
  [[nodiscard]] Result<std::string> read(const std::filesystem::path& path, std::size_t limit) const override;

 private:
  mutable std::mutex mutex_;
  Bundle bundle_;
  std::int64_t number_ = 0;
};

/// The web configuration on disk, for the process that may read it: bundles of its changes. One thread at a time.
class BundleSource {
 public:
  /// Errors as of LiveConfig::load().
  static Result<BundleSource> open(std::filesystem::path file);

  [[nodiscard]] bool tls() const { return tls_; }
  /// The last good one.
  [[nodiscard]] const Bundle& bundle() const { return bundle_; }
  /// Checks the files (a few stat calls), and reads them again when they have changed. Errors are logged, and the
  /// previous bundle stays in use. @return whether there is another bundle
  bool refresh();

 private:
  using States = std::map<std::string, std::vector<std::int64_t>>;

  explicit BundleSource(std::filesystem::path file) : file_(std::move(file)) {}
  Result<void> read();
  [[nodiscard]] bool changed() const;

  std::filesystem::path file_;
  bool tls_ = false;
  bool known_ = false;  // whether there was a good one
  Bundle bundle_;
  States states_;
};

}  // namespace tacho::web
