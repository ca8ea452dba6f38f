// What follows the '?' of a URL.
#include "page/query.h"

#include <string>

#include "fuzzer.h"

using namespace tacho;
using fuzz::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  std::size_t decoded = 0;
  for (const auto& [name, value] : page::parse_query(text)) {
    decoded += name.size() + value.size();
  }
  require(decoded <= text.size(), "decoded text is no longer than what was sent");
  if (const auto query = page::table_query(text)) {
    require(query->limit <= 10'000 && query->filter.size() <= text.size(), "what is asked for is bounded");
  } else {
    require(!query.error().message.empty() && query.error().message.size() < 1024, "an error is told, not repeated");
  }
  for (const std::string& id : page::split_ids(text)) {
    require(!id.empty() && id.find(',') == std::string::npos, "an id is one");
  }
  return 0;
}
