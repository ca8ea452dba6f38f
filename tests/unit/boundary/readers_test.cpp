#include "boundary/readers.h"

#include <catch2/catch.hpp>
#include <string>

using tacho::boundary::Readers;
using namespace std::chrono_literals;

namespace {

constexpr Readers::Time kStart{1h};

/// The reader comes at these seconds.
void come(Readers& readers, const std::string& reader, int first, int last, int interval) {
  for (int second = first; second <= last; second += interval) {
    readers.scraped(reader, kStart + std::chrono::seconds(second));
  }
}

bool is_seen(Readers& readers, int ended, int now) {
  return kStart + std::chrono::seconds(ended) < readers.all_have_seen(kStart + std::chrono::seconds(now));
}

}  // namespace

TEST_CASE("nobody has seen anything where nobody reads") {
  Readers readers;
  CHECK(readers.all_have_seen(kStart) == Readers::Time::min());
}

TEST_CASE("last values are there for two intervals of the slowest reader") {
  Readers readers;
  come(readers, "quick", 0, 300, 5);
  come(readers, "slow", 0, 300, 60);
  CHECK_FALSE(is_seen(readers, 200, 300));
  CHECK_FALSE(is_seen(readers, 201, 319));
  CHECK(is_seen(readers, 170, 300));
  SECTION("and for one scrape of each at least, however late it comes") {
    come(readers, "quick", 305, 420, 5);
    CHECK_FALSE(is_seen(readers, 301, 421));  // the slow one has been away since 300
    readers.scraped("slow", kStart + 425s);
    CHECK_FALSE(is_seen(readers, 301, 425));  // and is slower than we knew
    CHECK(is_seen(readers, 170, 425));
  }
}

TEST_CASE("a reader that comes very often is not the only one behind its address") {
  Readers readers;
  come(readers, "a", 0, 100, 1);
  CHECK_FALSE(is_seen(readers, 91, 100));
  CHECK(is_seen(readers, 89, 100));
}

TEST_CASE("who has read once may read every minute; if not, it is forgotten") {
  Readers readers;
  come(readers, "prometheus", 0, 300, 15);
  readers.scraped("curl", kStart + 100s);
  CHECK_FALSE(is_seen(readers, 150, 220));
  come(readers, "prometheus", 315, 330, 15);
  CHECK(is_seen(readers, 270, 330));
}

TEST_CASE("nobody else makes a reader forgotten, by however many names or addresses") {
  Readers readers;
  come(readers, "10.0.0.1 Prometheus", 0, 300, 15);
  const bool one_address = GENERATE(true, false);
  for (int second = 300; second < 315; ++second) {
    for (int i = 0; i < 64; ++i) {
      const std::string number = std::to_string(i);
      readers.scraped(one_address ? "10.0.0.2 " + number : "10.0.1." + number + " curl",
                      kStart + std::chrono::seconds(second));
    }
  }
  CHECK_FALSE(is_seen(readers, 301, 314));
}

TEST_CASE("a page that takes longer than somebody's interval is told with what may be done") {
  Readers readers;
  CHECK_FALSE(readers.complaint(1h));
  come(readers, "quick", 0, 20, 5);
  come(readers, "slow", 0, 300, 60);
  CHECK_FALSE(readers.complaint(5s));
  const auto line = readers.complaint(6s);
  REQUIRE(line);
  CHECK(line->starts_with("a scrape took 6.0 s, and quick comes every 5 s: "));
  CHECK(line->find("scrape_interval") != std::string::npos);
  SECTION("who has come but twice has no interval") {
    come(readers, "new", 100, 102, 1);
    CHECK(readers.complaint(6s)->find("quick") != std::string::npos);
    readers.scraped("new", kStart + 103s);
    CHECK(readers.complaint(6s)->find("new comes every 1 s") != std::string::npos);
  }
  SECTION("nobody scrapes more often than once a second") {
    for (int time = 0; time < 9; ++time) {
      readers.scraped("burst", kStart + time * 10ms);
    }
    CHECK_FALSE(readers.complaint(900ms));
  }
}

TEST_CASE("a page's time begins when the first of those asks whom it is for") {
  Readers readers;
  CHECK(readers.page_begun(kStart + 5s) == kStart + 5s);
  readers.scraped("a", kStart + 1s);
  readers.scraped("b", kStart + 2s);
  CHECK(readers.page_begun(kStart + 5s) == kStart + 1s);
  CHECK(readers.page_begun(kStart + 6s) == kStart + 6s);
}

TEST_CASE("any number of strangers is no more than 64 readers, and does not push out who reads all the time") {
  Readers readers;
  come(readers, "prometheus", 0, 600, 60);
  for (int stranger = 0; stranger < 1'000; ++stranger) {
    readers.scraped("stranger " + std::to_string(stranger), kStart + 601s);
    if (stranger % 50 == 0) {
      readers.scraped("prometheus", kStart + 601s);
    }
  }
  CHECK_FALSE(is_seen(readers, 590, 640));
}
