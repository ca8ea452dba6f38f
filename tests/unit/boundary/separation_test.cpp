#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

namespace {

namespace fs = std::filesystem;

const fs::path kExporter = fs::path(TACHO_SOURCE_DIR) / "exporter";

/// All files of the project that a file includes, and what those include.
void follow(const fs::path& file, std::set<std::string>& seen) {
  static const std::regex kInclude("^#include \"([^\"]+)\"");
  std::ifstream stream(file);
  std::string line;
  while (std::getline(stream, line)) {
    std::smatch match;
    if (std::regex_search(line, match, kInclude) && seen.insert(match[1]).second) {
      follow(kExporter / match[1].str(), seen);
    }
  }
}

/// What the web process is made of.
std::set<fs::path> web_sources() {
  std::set<fs::path> sources{kExporter / "endpoints.cpp"};
  for (const char* folder : {"web", "boundary"}) {
    for (const auto& entry : fs::directory_iterator(kExporter / folder)) {
      if (entry.path().extension() == ".cpp" || entry.path().extension() == ".h") {
        sources.insert(entry.path());
      }
    }
  }
  for (const char* name : {"index.cpp", "query.cpp", "routes.cpp"}) {
    sources.insert(kExporter / "page" / name);
  }
  return sources;
}

}  // namespace

TEST_CASE("the web side sees nothing of who counts") {
  const auto sources = web_sources();
  REQUIRE(sources.size() > 40);
  for (const fs::path& source : sources) {
    REQUIRE(fs::exists(source));
    std::set<std::string> seen;
    follow(source, seen);
    for (const std::string& header : seen) {
      CAPTURE(source, header);
      const std::string folder = header.substr(0, header.find('/'));
      CHECK_FALSE(std::set<std::string>{"scrape", "probes", "targets", "kernel", "bpf", "app.h"}.contains(folder));
    }
  }
}

TEST_CASE("the search for headers finds them") {
  std::set<std::string> seen;
  follow(kExporter / "answers.cpp", seen);
  CHECK(seen.contains("scrape/scraper.h"));
  CHECK(seen.contains("kernel/bpf_object.h"));
}
