#include "web/bundle.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <string>

#include "certificates.h"
#include "temp_dir.h"

namespace tacho::web {
namespace {

struct Place {
  test::TempDir dir;
  test::Authority authority{"authority"};

  Place() { issue("one"); }
  void issue(const std::string& name) const {
    const test::Identity identity = authority.issue(name, "DNS:localhost");
    dir.write("server.crt", identity.certificate);
    dir.write("server.key", identity.key);
  }
  [[nodiscard]] std::filesystem::path configure(const std::string& more = {}) const {
    return dir.write("web.yml", "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n" + more);
  }
};

std::string text_of(const Files& files, const std::filesystem::path& path) {
  const auto text = files.read(path, 1 << 20);
  return text ? *text : "error " + std::to_string(text.error().code);
}

}  // namespace

TEST_CASE_METHOD(Place, "A bundle has the files that the configuration names, and comes back from its bytes") {
  const auto file = configure();
  const Bundle read = Bundle::read(file);
  REQUIRE(read.entries().size() == 3);
  auto parsed = Bundle::parse(read.bytes());
  REQUIRE(parsed);
  BundledFiles files;
  const auto before = files.state(file);
  files.set(std::move(*parsed));
  CHECK(files.state(file) != before);
  for (const auto& path : {file, file.parent_path() / "server.crt", file.parent_path() / "server.key"}) {
    CHECK(text_of(files, path) == text_of(Files::on_disk(), path));
  }
  CHECK(text_of(files, "/etc/passwd") == "error " + std::to_string(ENOENT));
  SECTION("and no more of them than somebody wants") {
    CHECK(files.read(file, 3)->size() == 4);  // one more says that there is more
  }
}

TEST_CASE_METHOD(Place, "A file that cannot be read stands in the bundle with the reason") {
  const auto file = configure();
  std::filesystem::remove(file.parent_path() / "server.key");
  const auto parsed = Bundle::parse(Bundle::read(file).bytes());
  REQUIRE(parsed);
  const auto* const entry = parsed->find(file.parent_path() / "server.key");
  REQUIRE(entry != nullptr);
  CHECK_FALSE(entry->text);
  CHECK(entry->error.code == ENOENT);
  CHECK_FALSE(entry->error.message.empty());
}

TEST_CASE_METHOD(Place, "An empty file is another thing than none") {
  const auto file = dir.write("web.yml", "");
  const auto parsed = Bundle::parse(Bundle::read(file).bytes());
  REQUIRE(parsed);
  CHECK(parsed->entries().front().text == "");
}

TEST_CASE_METHOD(Place, "Who asks for certificates of clients gets the system's authorities") {
  const auto file = configure("  client_auth_type: RequireAndVerifyClientCert\n");
  CHECK(Bundle::read(file).entries().size() == 4);
}

TEST_CASE_METHOD(Place, "Bytes that are cut off are no bundle") {
  const std::string bytes = Bundle::read(configure()).bytes();
  unsigned parsed = 0;
  for (std::size_t size = 1; size < bytes.size(); ++size) {
    const auto bundle = Bundle::parse(std::string_view(bytes).substr(0, size));
    parsed += bundle ? 1U : 0U;
  }
  CHECK(parsed == 2);  // after the first file, and after the second
  CHECK_FALSE(Bundle::parse(std::string(8, '\xff')));
}

TEST_CASE_METHOD(Place, "What changes on disk is read again, and what is bad is not passed on") {
  const auto file = configure();
  auto source = BundleSource::open(file);
  REQUIRE(source);
  CHECK(source->tls());
  CHECK_FALSE(source->refresh());
  const std::string first = source->bundle().bytes();
  dir.write("server.key", "no key");
  CHECK_FALSE(source->refresh());
  CHECK(source->bundle().bytes() == first);
  issue("two");
  CHECK(source->refresh());
  const std::string second = source->bundle().bytes();
  CHECK(second != first);
  SECTION("also while there is none") {
    std::filesystem::remove(file.parent_path() / "server.crt");
    CHECK_FALSE(source->refresh());
    CHECK(source->bundle().bytes() == second);
    issue("three");
    CHECK(source->refresh());
  }
  SECTION("and TLS stays on") {
    dir.write("web.yml", "");
    CHECK_FALSE(source->refresh());
    CHECK(source->tls());
    CHECK(source->bundle().bytes() == second);
  }
}

TEST_CASE_METHOD(Place, "A configuration that is bad at the start is no source") {
  std::filesystem::remove(dir / "server.key");
  const auto source = BundleSource::open(configure());
  REQUIRE_FALSE(source);
  CHECK(source.error().message.find("server.key") != std::string::npos);
}

}  // namespace tacho::web
