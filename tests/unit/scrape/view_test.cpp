#include "scrape/view.h"

#include <catch2/catch.hpp>

using namespace tacho::scrape;

TEST_CASE("sort keys go by names that are all in the list") {
  for (const auto key :
       {SortKey::name, SortKey::rate, SortKey::p50, SortKey::p99, SortKey::queue, SortKey::idle, SortKey::conditions}) {
    CHECK(find_sort_key(sort_key_name(key)) == key);
    CHECK(sort_key_names().find(sort_key_name(key)) != std::string::npos);
  }
  CHECK_FALSE(find_sort_key("size"));
  CHECK_FALSE(find_sort_key(""));
}

TEST_CASE("the id of a target depends on its labels only, and on where one ends") {
  CHECK(target_id({{"target", "web"}}) == target_id({{"target", "web"}}));
  CHECK(target_id({{"target", "web"}}).size() == 16);
  CHECK(target_id({{"target", "web"}}) != target_id({{"target", "we"}, {"b", ""}}));
  CHECK(target_id({{"a", "bc"}}) != target_id({{"ab", "c"}}));
}

TEST_CASE("a filter's words are looked for in name, labels and cgroup, whatever their case") {
  tacho::targets::DesiredTarget target;
  target.name = "Web";
  target.labels = {{"target", "Web"}, {"team", "Edge"}};
  target.identity.path = "/system.slice/nginx.service";
  for (const char* filter : {"", "web", "WEB edge", "  nginx  ", "system edge"}) {
    CAPTURE(filter);
    CHECK(matches(target, filter));
  }
  CHECK_FALSE(matches(target, "webb"));
  CHECK_FALSE(matches(target, "web apache"));
}
