#include "boundary/question.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <string>

using namespace tacho::boundary;

TEST_CASE("a part of the table is asked for and understood") {
  const TableQuery query{.sort = SortKey::p99, .descending = false, .filter = "web shop", .offset = 7, .limit = 10'000};
  const auto question = table_question(query);
  REQUIRE(question);
  REQUIRE(is_valid(*question));
  CHECK(question->kind == Kind::table);
  const TableQuery understood = question->table_query();
  CHECK(understood.sort == SortKey::p99);
  CHECK_FALSE(understood.descending);
  CHECK(understood.filter == "web shop");
  CHECK(understood.offset == 7);
  CHECK(understood.limit == 10'000);
  CHECK(table_question({.filter = std::string(kMaxFilter, 'x')}));
  CHECK_FALSE(table_question({.filter = std::string(kMaxFilter + 1, 'x')}));
}

TEST_CASE("fields beyond their bounds make no question") {
  const Question good;
  CHECK(is_valid(good));
  const auto with = [&](auto change) {
    Question question = good;
    change(question);
    return is_valid(question);
  };
  CHECK_FALSE(with([](Question& q) { q.kind = static_cast<Kind>(kKinds); }));
  CHECK_FALSE(with([](Question& q) { q.sort = static_cast<SortKey>(kSortKeys); }));
  CHECK_FALSE(with([](Question& q) { q.descending = 2; }));
  CHECK_FALSE(with([](Question& q) { q.limit = kMaxRows + 1; }));
  CHECK_FALSE(with([](Question& q) { q.filter_size = kMaxFilter + 1; }));
  CHECK_FALSE(with([](Question& q) { q.id_count = kMaxIds + 1; }));
  CHECK(with([](Question& q) { q.id_count = kMaxIds; }));
}

TEST_CASE("whatever bytes come, what is valid can be read") {
  std::mt19937_64 random(1);
  unsigned valid = 0;
  for (int round = 0; round < 20'000; ++round) {
    Question question;
    auto* const bytes = reinterpret_cast<unsigned char*>(&question);
    for (int change = 0; change < 1 + round % 8; ++change) {
      bytes[random() % offsetof(Question, filter)] = static_cast<unsigned char>(random());
    }
    if (is_valid(question)) {
      ++valid;
      CHECK(question.table_query().filter.size() == question.filter_size);
      CHECK(question.id_list().size() == question.id_count);
      CHECK_FALSE(sort_key_name(question.sort).empty());
    }
  }
  CHECK(valid > 100);
  CHECK(valid < 20'000);
}

TEST_CASE("identifiers have sixteen digits") {
  CHECK(id_text(0x1fULL) == "000000000000001f");
  CHECK(parse_id("000000000000001f") == 0x1fULL);
  CHECK(parse_id("ffffffffffffffff") == UINT64_MAX);
  for (const char* none : {"", "1f", "000000000000001F", "000000000000001g", "0000000000000001f", "-00000000000001f"}) {
    CAPTURE(none);
    CHECK_FALSE(parse_id(none));
  }
}
