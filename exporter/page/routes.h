#pragma once

#include <functional>
#include <string>
#include <vector>

#include "scrape/scraper.h"
#include "web/message.h"

namespace tacho::page {

/// The live page at /, its files below /assets/, and the JSON below /api/v1/ that it and `tacho top` read. The scraper
/// must outlive the server.
/// @param absent names of configured targets that match nothing; called by several threads
std::vector<web::Route> routes(scrape::Scraper& scraper, const std::string& telemetry_path,
                               std::function<std::vector<std::string>()> absent);

}  // namespace tacho::page
