#include "targets/target_news.h"

#include <catch2/catch.hpp>

using std::chrono::seconds;
using tacho::targets::TargetNews;

TEST_CASE("targets that come and go are told at once, and then together") {
  TargetNews news;
  const TargetNews::Time begin{seconds(1000)};
  CHECK_FALSE(news.line(begin, 0));
  news.note({"web", "api"}, {});
  CHECK(news.line(begin, 2) == "2 targets; new: api, web");
  CHECK_FALSE(news.line(begin + seconds(20), 2));
  news.note({"db"}, {});
  CHECK(news.line(begin + seconds(21), 1) == "1 target; new: db");
  news.note({"a"}, {"db"});
  CHECK_FALSE(news.line(begin + seconds(30), 1));
  news.note({}, {"web"});
  CHECK(news.line(begin + seconds(31), 1) == "1 target; new: a; gone: db, web");
}

TEST_CASE("a line has eight names of each at most") {
  TargetNews news;
  news.note({"1", "2", "3", "4", "5", "6", "7", "8", "9"}, {"1", "2", "3", "4", "5", "6", "7", "8"});
  CHECK(news.line({}, 9) == "9 targets; new: 1, 2, 3, 4, 5, 6, 7, 8 and 1 more; gone: 1, 2, 3, 4, 5, 6, 7, 8");
}
