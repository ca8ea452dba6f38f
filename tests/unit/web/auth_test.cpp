#include <openssl/evp.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "bcrypt_hash.h"
#include "running_server.h"
#include "temp_dir.h"
#include "web/basic_auth.h"

namespace tacho::web {

std::string test::basic(const std::string& credentials) {
  std::string encoded(credentials.size() * 2 + 4, '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                      reinterpret_cast<const unsigned char*>(credentials.data()), static_cast<int>(credentials.size()));
  encoded.resize(static_cast<std::size_t>(size));
  return "Basic " + encoded;
}

namespace {

using test::basic;
using test::bcrypt_hash;
using test::get;
using test::RunningServer;

TEST_CASE("Without users everybody is let in") {
  BasicAuth auth;
  CHECK(auth.check({}, std::nullopt) == Login::granted);
}

TEST_CASE("Each kind of bcrypt hash is understood") {
  BasicAuth auth;
  const BasicAuth::Users users{{"u", bcrypt_hash("secret", 4, GENERATE("$2a$", "$2b$", "$2y$"))}};
  CHECK(auth.check(users, basic("u:secret")) == Login::granted);
  CHECK(auth.check(users, basic("u:Secret")) == Login::denied);
}

TEST_CASE("Only whole, well-formed credentials are accepted") {
  using namespace std::string_literals;
  BasicAuth auth;
  const BasicAuth::Users users{{"u", bcrypt_hash("a:b c")}, {"", bcrypt_hash("x")}};
  CHECK(auth.check(users, basic("u:a:b c")) == Login::granted);
  CHECK(auth.check(users, "bAsIC  " + basic("u:a:b c").substr(6)) == Login::granted);
  CHECK(auth.check(users, basic(":x")) == Login::granted);
  const auto refused = GENERATE_COPY(
      std::optional<std::string>(), std::optional<std::string>(""), std::optional<std::string>("Basic"),
      std::optional<std::string>("Basic "), std::optional<std::string>("Basic =="),
      std::optional<std::string>("Basic !!!!"), std::optional<std::string>("Bearer " + basic("u:a:b c").substr(6)),
      std::optional<std::string>("Basic u:a:b c"), std::optional<std::string>(basic("u")),
      std::optional<std::string>(basic("u:")), std::optional<std::string>(basic("u:a:b c\0d"s)),
      std::optional<std::string>(basic("u:a:b c\0"s)), std::optional<std::string>(basic("u\0:a:b c"s)),
      std::optional<std::string>(basic("v:a:b c")), std::optional<std::string>(basic("U:a:b c")),
      std::optional<std::string>(basic("u:" + std::string(5000, 'x'))));
  CHECK(auth.check(users, refused) == Login::denied);
}

TEST_CASE("A password that was right is not hashed again, a wrong one is") {
  BasicAuth auth;
  BasicAuth::Users users{{"u", bcrypt_hash("secret")}};
  for (int i = 0; i < 3; ++i) {
    CHECK(auth.check(users, basic("u:secret")) == Login::granted);
  }
  CHECK(auth.hashed() == 1);
  for (int i = 0; i < 3; ++i) {
    CHECK(auth.check(users, basic("u:wrong")) == Login::denied);
  }
  CHECK(auth.hashed() == 4);
  users["u"] = bcrypt_hash("other");
  CHECK(auth.check(users, basic("u:secret")) == Login::denied);
}

TEST_CASE("A name that does not exist costs one hash, too") {
  BasicAuth auth;
  const BasicAuth::Users users{{"u", bcrypt_hash("secret")}};
  CHECK(auth.check(users, basic("nobody:secret")) == Login::denied);
  CHECK(auth.check(users, basic("nobody:secret")) == Login::denied);
  CHECK(auth.hashed() == 2);
}

TEST_CASE("What is remembered is bounded") {
  BasicAuth auth;
  BasicAuth::Users users;
  const std::string hash = bcrypt_hash("secret");
  for (int i = 0; i < 200; ++i) {
    users["u" + std::to_string(i)] = hash;
  }
  for (int i = 0; i < 200; ++i) {
    CHECK(auth.check(users, basic("u" + std::to_string(i) + ":secret")) == Login::granted);
  }
  CHECK(auth.check(users, basic("u199:secret")) == Login::granted);
  CHECK(auth.hashed() == 200);
  CHECK(auth.check(users, basic("u0:secret")) == Login::granted);
  CHECK(auth.hashed() == 201);
}

TEST_CASE("What has to be hashed is told from what is known at once") {
  BasicAuth auth;
  const BasicAuth::Users users{{"u", bcrypt_hash("secret")}};
  CHECK(auth.look(users, std::nullopt) == Login::denied);
  CHECK(auth.look(users, basic("u:secret")) == Login::unknown);
  CHECK(auth.look(users, basic("v:secret")) == Login::unknown);
  CHECK(auth.hashed() == 0);
  CHECK(auth.check(users, basic("u:secret")) == Login::granted);
  CHECK(auth.look(users, basic("u:secret")) == Login::granted);
  CHECK(auth.look(users, basic("u:wrong")) == Login::unknown);
}

TEST_CASE("While many guess, a login that is not known yet gets in", "[slow]") {
  const test::TempDir dir;
  const auto config = dir.write("web.yml", "basic_auth_users: {u: " + bcrypt_hash("secret", 8) + "}\n");
  const RunningServer server(test::one_page(), config);
  std::atomic<bool> stop = false;
  std::atomic<int> guessed = 0;
  std::vector<std::thread> guessers;
  guessers.reserve(24);
  for (int i = 0; i < 24; ++i) {
    guessers.emplace_back([&, i] {
      for (int n = 0; !stop; ++n) {
        const auto credentials = basic("u:" + std::to_string(i) + '-' + std::to_string(n));
        guessed += get(server.address(), "/metrics", "Authorization: " + credentials + "\r\n").status == 401 ? 1 : 0;
      }
    });
  }
  while (guessed < 24) {
    std::this_thread::yield();
  }
  CHECK(get(server.address(), "/metrics", "Authorization: " + basic("u:secret") + "\r\n").status == 200);
  stop = true;
  std::ranges::for_each(guessers, &std::thread::join);
}

TEST_CASE("A refusal costs as much as the dearest hash, whoever is named") {
  BasicAuth auth;
  const BasicAuth::Users users{{"cheap", bcrypt_hash("secret", 4)}, {"dear", bcrypt_hash("secret", 9)}};
  const auto cost = [&](const std::string& credentials) {
    auto least = std::chrono::nanoseconds::max();
    for (int i = 0; i < 5; ++i) {
      timespec before{};
      timespec after{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
      CHECK(auth.check(users, basic(credentials)) == Login::denied);
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
      least = std::min(least, std::chrono::seconds(after.tv_sec - before.tv_sec) +
                                  std::chrono::nanoseconds(after.tv_nsec - before.tv_nsec));
    }
    return static_cast<double>(least.count());
  };
  const double dear = cost("dear:wrong");
  for (const char* const name : {"cheap", "nobody", "no one", "x"}) {
    INFO(name);
    CHECK(cost(std::string(name) + ":wrong") > dear * 0.8);
  }
}

TEST_CASE("A server with users lets nobody else near a handler") {
  const test::TempDir dir;
  const auto config = dir.write("web.yml", "basic_auth_users: {u: " + bcrypt_hash("secret") + "}\n");
  std::atomic<int> calls = 0;
  const RunningServer server({test::get_route("/metrics",
                                              [&](const Request&) {
                                                ++calls;
                                                return test::text_response("up 1\n");
                                              })},
                             config);
  const auto refused = get(server.address(), "/metrics");
  CHECK(refused.status == 401);
  CHECK(refused.header("WWW-Authenticate").value_or("").starts_with("Basic realm="));
  CHECK(get(server.address(), "/metrics", "Authorization: " + basic("u:wrong") + "\r\n").status == 401);
  CHECK(get(server.address(), "/missing").status == 401);
  CHECK(calls == 0);
  CHECK(get(server.address(), "/metrics", "Authorization: " + basic("u:secret") + "\r\n").body == "up 1\n");
  CHECK(calls == 1);
}

TEST_CASE("Users, headers and limits are read again when the file changes, and kept when it is broken") {
  const test::TempDir dir;
  const auto config = dir.write("web.yml", "basic_auth_users: {u: " + bcrypt_hash("one") + "}\n");
  RunningServer server(test::one_page(), config);
  const auto status = [&](const std::string& password) {
    return get(server.address(), "/metrics", "Authorization: " + basic("u:" + password) + "\r\n").status;
  };
  CHECK(status("one") == 200);
  dir.write("web.yml", "basic_auth_users: {u: " + bcrypt_hash("two") +
                           "}\n"
                           "http_server_config: {headers: {X-Frame-Options: deny}}\n");
  CHECK(status("one") == 401);
  CHECK(status("two") == 200);
  CHECK(get(server.address(), "/metrics").header("X-Frame-Options") == "deny");
  dir.write("web.yml", "basic_auth_users: {u: plain}\n");
  CHECK(status("two") == 200);
  CHECK(status("plain") == 401);
  dir.write("web.yml", "rate_limit: {interval: 1h, burst: 2}\n");
  CHECK(status("two") == 200);
  CHECK(status("-") == 200);
  CHECK(server.statistics().refused == 0);
  CHECK(status("-") == 429);
  CHECK(server.statistics().refused == 1);
  const std::string log = server.log();
  CHECK(log.contains("web.yml:1:23: error:"));
  CHECK_FALSE(log.contains("'plain'"));
}

}  // namespace
}  // namespace tacho::web
