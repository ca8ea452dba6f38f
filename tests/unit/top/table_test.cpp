#include "top/table.h"

#include <catch2/catch.hpp>
#include <clocale>
#include <vector>

#include "base/utf8.h"

using namespace tacho::top;
using tacho::scrape::SortKey;

namespace {

Row row(const std::string& name) {
  Row result;
  result.id = name;
  result.name = name;
  result.rate = 1234.5;
  result.p99 = 0.0125;
  result.conditions = "multiplexed";
  return result;
}

Frame frame_of(std::vector<Row> rows) {
  Frame frame;
  frame.targets = rows.size();
  frame.rows = std::move(rows);
  return frame;
}

}  // namespace

TEST_CASE("text is filled and cut by what it takes on the screen") {
  REQUIRE(::setlocale(LC_ALL, "C.UTF-8") != nullptr);
  CHECK(display_width("aé漢") == 4);
  CHECK(fit("ab", 4) == "ab  ");
  CHECK(fit("ab", 4, true) == "  ab");
  CHECK(fit("abcdef", 4) == "abc…");
  CHECK(fit("漢字漢字", 4) == "漢… ");
  CHECK(fit("abc", 0).empty());
  CHECK(fit("abc", 1) == "…");
}

TEST_CASE("every line is as wide as the terminal, down to the narrowest") {
  REQUIRE(::setlocale(LC_ALL, "C.UTF-8") != nullptr);
  const Frame frame = frame_of({row("web"), row("a-very-long-name-of-a-container-in-a-pod-in-a-namespace-漢字")});
  const Trends trends;
  for (const std::size_t width : {400UL, 200UL, 120UL, 100UL, 80UL, 60UL, 40UL, 30UL}) {
    CAPTURE(width);
    for (const std::string& line : table_lines(frame, width, SortKey::rate, true, &trends)) {
      CHECK(display_width(line) == width);
    }
  }
  CHECK(table_lines(frame, 10, SortKey::rate, true, &trends).size() == 3);
  CHECK(table_lines(frame, 1, SortKey::rate, true, &trends).size() == 3);
}

TEST_CASE("what matters most stays longest") {
  const auto header = [](std::size_t width) {
    return table_lines(frame_of({row("web")}), width, SortKey::p99, true, nullptr).front();
  };
  CHECK(header(200).find("CALLS TO") != std::string::npos);
  CHECK(header(80).find("CALLS TO") == std::string::npos);
  CHECK(header(55).find("p50") == std::string::npos);
  for (const char* title : {"TARGET", "REQ/s", "p99▾"}) {
    CHECK(header(45).find(title) != std::string::npos);
  }
}

TEST_CASE("printed once, nothing is cut") {
  const std::string name(100, 'x');
  const auto lines = table_lines(frame_of({row(name)}), 0, SortKey::name, false, nullptr);
  CHECK(lines.at(0).find("TARGET▴") == 0);
  CHECK(lines.at(1).find(name) == 0);
  CHECK(lines.at(1).find("multiplexed") != std::string::npos);
}

TEST_CASE("a sparkline is relative to its highest point") {
  const std::vector<double> points{0, 1, 2, 4};
  CHECK(sparkline(points, 4) == "▁▃▅█");
  CHECK(sparkline(points, 6) == "  ▁▃▅█");
  CHECK(sparkline(points, 2) == "▅█");
  CHECK(sparkline({}, 2) == "  ");
}

TEST_CASE("trends go on from frame to frame and begin anew with another tacho") {
  Trends trends;
  Frame frame = frame_of({row("web")});
  frame.instance = "one";
  for (std::uint64_t tick = 1; tick <= 100; ++tick) {
    frame.tick = tick;
    frame.rows[0].last = static_cast<double>(tick);
    trends.follow(frame);
    trends.follow(frame);  // the same once more
  }
  REQUIRE(trends.of("web").size() == Trends::kPoints);
  CHECK(trends.of("web").back() == 100);
  CHECK(trends.of("web").front() == 41);
  CHECK(trends.of("other").empty());
  frame.instance = "two";
  frame.tick = 1;
  trends.follow(frame);
  CHECK(trends.of("web").size() == 1);
}

TEST_CASE("a row is doubtful for what it shows, not for what it does not") {
  CHECK_FALSE(is_doubtful(""));
  CHECK_FALSE(is_doubtful("few_samples"));
  CHECK_FALSE(is_doubtful("few_samples no_poll busy_polling"));
  CHECK_FALSE(is_doubtful("unheard_of"));
  CHECK(is_doubtful("multiplexed"));
  CHECK(is_doubtful("few_samples lost_events"));
}
