#include "boundary/answer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

using namespace tacho;
using namespace tacho::boundary;

TEST_CASE("a text is passed on whole, and nobody can change it") {
  auto text = SealedText::create();
  REQUIRE(text);
  text->append("begin ");
  const std::size_t before = text->size();
  text->append(std::string(100'000, 'x'));
  text->cut(before);
  text->append("end");
  REQUIRE(text->size() == 9);
  REQUIRE(text->seal());
  const int fd = text->descriptor().get();
  CHECK(::write(fd, "y", 1) < 0);
  CHECK(::ftruncate(fd, 1) < 0);
  CHECK(::ftruncate(fd, 4096) < 0);
  CHECK(::fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) < 0);
  CHECK(::mmap(nullptr, 9, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
  const auto mapped = MappedText::map(text->descriptor());
  REQUIRE(mapped);
  CHECK(mapped->view() == "begin end");
}

TEST_CASE("what is not sealed is refused") {
  auto text = SealedText::create();
  REQUIRE(text);
  text->append("changes under its reader");
  const auto mapped = MappedText::map(text->descriptor());
  REQUIRE_FALSE(mapped);
  CHECK(mapped.error().message == "an answer is not sealed");
  UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  CHECK_FALSE(MappedText::map(file));
}

TEST_CASE("an empty text is one") {
  auto text = SealedText::create();
  REQUIRE(text);
  REQUIRE(text->seal());
  const auto mapped = MappedText::map(text->descriptor());
  REQUIRE(mapped);
  CHECK(mapped->view().empty());
}
