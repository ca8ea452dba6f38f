#include "documents.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "probes/registry.h"
#include "scrape/conditions.h"
#include "scrape/families.h"
#include "scrape/self_families.h"

namespace scrape = tacho::scrape;

namespace {

const std::filesystem::path kConditions = std::filesystem::path(TACHO_SOURCE_DIR) / "grafana/conditions.json";
const std::filesystem::path kFile = std::filesystem::path(TACHO_SOURCE_DIR) / "exporter/METRICS.md";

std::string contents(const std::filesystem::path& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

}  // namespace

TEST_CASE("exporter/METRICS.md is what the descriptors say") {
  if (std::getenv("TACHO_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(kFile) << scrape::metrics_document();
  }
  INFO(kFile << " is stale: run `TACHO_UPDATE_GOLDEN=1 unit_scrape` and look at the difference");
  CHECK(contents(kFile) == scrape::metrics_document());
}

TEST_CASE("grafana/conditions.json is the table of conditions") {
  if (std::getenv("TACHO_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(kConditions) << scrape::conditions_json();
  }
  INFO(kConditions << " is stale: run `TACHO_UPDATE_GOLDEN=1 unit_scrape`, grafana/generate and "
                   << "deploy/kubernetes/generate, and look at the difference");
  CHECK(contents(kConditions) == scrape::conditions_json());
}

TEST_CASE("the page explains every condition") {
  const std::string script = contents(std::filesystem::path(TACHO_SOURCE_DIR) / "exporter/page/assets/format.js");
  for (const scrape::ConditionEntry& condition : scrape::condition_table()) {
    CAPTURE(condition.name);
    CHECK(script.find("\n  " + std::string(condition.name) + ": \"") != std::string::npos);
  }
}

TEST_CASE("every family is in the document, once, under names that are used once") {
  const std::string text = scrape::metrics_document();
  std::set<std::string_view> names;
  const auto check = [&](std::string_view name) {
    CAPTURE(name);
    CHECK(names.insert(name).second);
    const std::string row = "\n| `" + std::string(name) + "` | ";
    const auto first = text.find(row);
    CHECK(first != std::string::npos);
    CHECK(text.find(row, first + 1) == std::string::npos);
  };
  for (const auto& probe : tacho::probes::registry()) {
    CHECK(text.find("## " + std::string(probe.title)) != std::string::npos);
    for (const auto& family : probe.families()) {
      check(family.name);
    }
  }
  for (const auto& judged : scrape::judged_families()) {
    for (const auto& family : judged.families) {
      check(family.name);
    }
  }
  for (const auto& family : scrape::kSelfFamilies) {
    check(family.name);
  }
}

TEST_CASE("the document says how to renew it, and no placeholder is left in it") {
  const std::string text = scrape::metrics_document();
  CHECK(text.find("TACHO_UPDATE_GOLDEN=1") != std::string::npos);
  CHECK(text.find("unit_scrape") != std::string::npos);
  CHECK(text.find('{') == std::string::npos);
  CHECK(text.ends_with("|\n"));
}

TEST_CASE("every table row of the document has as many cells as its header") {
  std::istringstream lines(scrape::metrics_document());
  std::string line;
  long cells = 0;
  int rows = 0;
  while (std::getline(lines, line)) {
    const auto bars = std::ranges::count(line, '|');
    if (!line.starts_with('|')) {
      cells = 0;
      continue;
    }
    CAPTURE(line);
    cells = cells == 0 ? bars : cells;
    CHECK(bars == cells);
    ++rows;
  }
  CHECK(rows > 30);
}
