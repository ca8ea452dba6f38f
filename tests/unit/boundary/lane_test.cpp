#include "boundary/lane.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <string>
#include <thread>

using namespace tacho;
using namespace tacho::boundary;

namespace {

SealedAnswer echo(const Question& question) {
  auto text = SealedText::create();
  text->append(std::to_string(question.since));
  text->seal().value();
  return {.status = Status::done, .text = std::move(*text)};
}

/// Both ends, each lane with somebody who answers.
class Lanes {
 public:
  explicit Lanes(const AnswerFunction& answer) {
    for (int i = 0; i < 3; ++i) {
      auto lane = make_lane();
      REQUIRE(lane);
      near.push_back(std::move(lane->first));
      far.push_back(std::move(lane->second));
    }
    for (const UniqueFd& end : far) {
      threads_.emplace_back([&answer, fd = end.get()] { serve_lane(fd, answer); });
    }
  }
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;
  ~Lanes() {
    near.clear();
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }
  std::vector<UniqueFd> near;
  std::vector<UniqueFd> far;

 private:
  std::vector<std::thread> threads_;
};

}  // namespace

TEST_CASE("each question gets its own answer, whoever asks") {
  const AnswerFunction answer = echo;
  Lanes lanes(answer);
  FarCollector collector(std::move(lanes.near));
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (std::uint64_t asker = 0; asker < 6; ++asker) {
    threads.emplace_back([&, asker] {
      for (std::uint64_t i = 0; i < 200; ++i) {
        const std::uint64_t mark = asker * 1000 + i;
        const auto got = collector.ask({.since = mark, .kind = i % 2 == 0 ? Kind::table : Kind::text_metrics});
        right += got && got->status == Status::done && got->text.view() == std::to_string(mark) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(right == 1200);
}

TEST_CASE("who asks and takes no answer is not answered for long, and leaves nothing undone when it ends") {
  std::atomic<int> made = 0;
  const AnswerFunction answer = [&](const Question& question) {
    ++made;
    return echo(question);
  };
  {
    Lanes lanes(answer);
    REQUIRE(limit_unread(lanes.far[0].get()));
    const Question question{.kind = Kind::table};
    int asked = 0;
    while (
        send_message(lanes.near[0].get(), std::as_bytes(std::span(&question, 1)), -1, asked < 8 ? 0 : MSG_DONTWAIT)) {
      ++asked;
    }
    CHECK(asked > made);
  }
  CHECK(made <= 8);
}

TEST_CASE("what is no question is answered as none") {
  unsigned invalid = 0;
  const AnswerFunction answer = [&](const Question& question) {
    invalid += is_valid(question) ? 0U : 1U;
    return SealedAnswer{};
  };
  {
    Lanes lanes(answer);
    const std::string text = "GET / HTTP/1.1";
    REQUIRE(send_message(lanes.near[0].get(), std::as_bytes(std::span(text))));
    std::array<std::byte, 64> head{};
    CHECK(receive_message(lanes.near[0].get(), head).size == 1);
  }
  CHECK(invalid == 1);
}

TEST_CASE("who is gone is told at once") {
  auto lane = make_lane();
  auto other = make_lane();
  REQUIRE((lane && other));
  std::vector<UniqueFd> lanes;
  lanes.push_back(std::move(lane->first));
  lanes.push_back(std::move(other->first));
  FarCollector collector(std::move(lanes));
  lane->second.reset();
  other->second.reset();
  CHECK_FALSE(collector.has_ended());
  CHECK_FALSE(collector.ask({.kind = Kind::table}));
  CHECK(collector.has_ended());
  CHECK_FALSE(collector.ask({.kind = Kind::text_metrics}));
}

TEST_CASE("an answer whose text finds no free descriptor is an error, and the next one is whole") {
  std::array<SealedAnswer, 2> made{echo({.since = 1}), echo({.since = 2})};
  const AnswerFunction answer = [&](const Question& question) { return std::move(made.at(question.since - 1)); };
  Lanes lanes(answer);
  FarCollector collector(std::move(lanes.near));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const auto got = collector.ask({.since = 1, .kind = Kind::table});
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE_FALSE(got);
  CHECK(got.error().code == EMFILE);
  CHECK_FALSE(collector.has_ended());
  const auto next = collector.ask({.since = 2, .kind = Kind::table});
  REQUIRE(next);
  CHECK(next->text.view() == "2");
}

TEST_CASE("an answer whose text cannot be sent is one that failed, and the lane goes on") {
  int asked = 0;
  const AnswerFunction answer = [&](const Question& question) {
    SealedAnswer made = echo(question);
    if (++asked == 1) {
      ::close(made.text.descriptor().get());  // as good as one for which the kernel has no room
    }
    return made;
  };
  Lanes lanes(answer);
  FarCollector collector(std::move(lanes.near));
  const auto got = collector.ask({.since = 1, .kind = Kind::table});
  REQUIRE(got);
  CHECK(got->status == Status::failed);
  const auto next = collector.ask({.since = 2, .kind = Kind::table});
  REQUIRE(next);
  CHECK(next->text.view() == "2");
}
