#include "page/assets.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

using namespace tacho::page;

TEST_CASE("what is built in is what stands in the folder, and all of it") {
  for (const Asset& asset : assets()) {
    CAPTURE(asset.name);
    std::ifstream file(std::string(TACHO_SOURCE_DIR "/exporter/page/assets/") + std::string(asset.name));
    std::ostringstream text;
    text << file.rdbuf();
    REQUIRE_FALSE(text.str().empty());
    CHECK(asset.body == text.str());
    CHECK(asset.tag.size() == 16);
  }
}

TEST_CASE("the page needs nothing from elsewhere, and nothing inline") {
  const std::string page = index_html("/metrics");
  CHECK(page.starts_with("<!DOCTYPE html>"));
  for (const char* word : {"http://", "https://", "src=\"//", "<style", "style=", "onclick", "onload", "{{"}) {
    CAPTURE(word);
    CHECK(page.find(word) == std::string::npos);
  }
  for (const Asset& asset : assets()) {
    if (asset.name.ends_with(".js")) {
      CAPTURE(asset.name);
      for (const char* word : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("}) {
        CHECK(asset.body.find(word) == std::string_view::npos);
      }
    }
  }
}

TEST_CASE("the link to the metrics goes where they are, and no further") {
  CHECK(index_html("/custom").find("href=\"./custom\"") != std::string::npos);
  CHECK(index_html("/\"onmouseover=\"x").find("\"onmouseover") == std::string::npos);
}
