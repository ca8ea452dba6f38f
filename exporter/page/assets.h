#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tacho::page {

/// A file of exporter/page/assets, as it was when tacho was built.
struct Asset {
  std::string_view name;  ///< "page.js"
  std::string_view body;
  std::string_view tag;  ///< for ETag: changes with the body
};

std::span<const Asset> assets();

/// The page at /. @param telemetry_path where the metrics are, for the link
std::string index_html(std::string_view telemetry_path);

}  // namespace tacho::page
