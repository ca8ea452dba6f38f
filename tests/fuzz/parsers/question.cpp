// What a web process that was taken over may send to the collector.
#include "boundary/question.h"

#include <algorithm>
#include <cstring>

#include "fuzzer.h"

using namespace tacho;
using fuzz::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  boundary::Question question;
  std::memcpy(&question, data, std::min(size, sizeof(question)));
  if (!boundary::is_valid(question)) {
    return 0;
  }
  const boundary::TableQuery query = question.table_query();
  require(query.filter.size() <= boundary::kMaxFilter && query.limit <= boundary::kMaxRows, "what is asked is bounded");
  require(!boundary::sort_key_name(query.sort).empty(), "the table is sorted by something that there is");
  for (const std::uint64_t id : question.id_list()) {
    require(boundary::parse_id(boundary::id_text(id)) == id, "an id has one text");
  }
  const auto again = boundary::table_question(query);
  require(again && boundary::is_valid(*again), "a question for the same part of the table can be asked");
  return 0;
}
