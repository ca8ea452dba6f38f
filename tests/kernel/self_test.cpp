// tacho in a cgroup of its own, beside others: the pod it is a sidecar of.

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "kernel/support/cgroup.h"
#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"

using tacho::config::SelfScope;
using namespace tacho::kernel_test;

namespace {

constexpr std::uint64_t kNobody = ~std::uint64_t{0};
constexpr int kRequests = 23;

tacho::config::Config watching_self(SelfScope scope) {
  tacho::config::Config config;
  tacho::config::TargetRule rule;
  rule.name = "self";
  rule.self = scope;
  config.targets.push_back(rule);
  config.probes.poll.enabled = false;
  return config;
}

/// tacho in a process of a cgroup, asked about other cgroups by their paths.
class Sidecar {
 public:
  /// @param paths all that it will be asked about, there already or not
  Sidecar(const std::string& cgroup, SelfScope scope, std::vector<std::string> paths)
      : paths_(std::move(paths)), child_(cgroup, [scope, paths = paths_](Line& parent) {
          Running tacho(watching_self(scope));
          parent.tell();
          for (std::uint64_t word = parent.hear(); word != 0; word = parent.hear()) {
            const Labels target{{"cgroup", paths.at(word / 2 - 1)}};
            const bool wanted = word % 2 == 1;
            const auto watched = [&] { return tacho.watches(target); };
            (void)tacho.wait_for([&] { return watched() == wanted; });
            parent.tell(watched() ? static_cast<std::uint64_t>(tacho.page().value("tacho_requests_total", target))
                                  : kNobody);
          }
        }) {
    (void)child_.hear();
  }
  /// Requests of a cgroup, once it is watched.
  [[nodiscard]] std::uint64_t requests(std::size_t path) const { return asked(2 * (path + 1) + 1); }
  /// kNobody, once the cgroup is not watched.
  [[nodiscard]] std::uint64_t gone(std::size_t path) const { return asked(2 * (path + 1)); }
  void finish() {
    child_.tell(0);
    child_.finish();
  }

 private:
  [[nodiscard]] std::uint64_t asked(std::uint64_t word) const {
    child_.tell(word);
    return child_.hear();
  }

  std::vector<std::string> paths_;
  Child child_;
};

/// What a tacho in that cgroup says when it cannot start; nothing if it can.
std::string refusal(const std::string& cgroup, SelfScope scope) {
  Shared<std::array<char, 512>> text;
  Child child(cgroup, [scope, &text](Line&) {
    const auto app = tacho::App::start(tacho::Cli{}, watching_self(scope), true);
    if (!app) {
      app.error().message.copy(text->data(), text->size() - 1);
    }
  });
  child.finish();
  return text->data();
}

}  // namespace

TEST_CASE("as a sidecar it watches every container of its pod, and nothing else") {
  const Cgroup pod(playground() + "/" + unique_name());
  const Cgroup outside(playground() + "/" + unique_name());
  const Cgroup own(pod.path() + "/tacho");
  const Cgroup app1(pod.path() + "/app1");
  const Cgroup inner(app1.path() + "/inner");
  const Cgroup innermost(inner.path() + "/most");
  auto app2 = std::make_unique<Cgroup>(pod.path() + "/app2");
  Server first(app1.directory());
  Server nested(inner.directory());
  Server second(app2->directory());
  Server stranger(outside.directory());
  Server at_home(own.directory());
  const std::string app3_path = pod.path() + "/app3";
  Sidecar tacho(own.directory(), SelfScope::pod,
                {app1.path(), inner.path(), app2->path(), app3_path, outside.path(), own.path(), pod.path()});
  first.ask(kRequests);
  nested.ask(5);
  second.ask(7);
  stranger.ask(3);
  at_home.ask(3);
  CHECK(tacho.requests(0) == kRequests + 5);
  CHECK(tacho.requests(2) == 7);
  for (const std::size_t other : {1U, 3U, 4U, 5U, 6U}) {
    CAPTURE(other);
    CHECK(tacho.gone(other) == kNobody);
  }

  const Cgroup app3(app3_path);
  CHECK(tacho.requests(3) == 0);
  Server late(app3.directory());
  const Cgroup late_inner(app3.path() + "/inner");
  Server late_nested(late_inner.directory());
  Server late_innermost(innermost.directory());
  late.ask(11);
  late_nested.ask(13);
  late_innermost.ask(2);
  CHECK(tacho.requests(3) == 24);
  CHECK(tacho.requests(0) == kRequests + 7);

  second.finish();
  app2.reset();
  CHECK(tacho.gone(2) == kNobody);
  CHECK(tacho.requests(0) == kRequests + 7);
  for (Server* server : {&first, &nested, &stranger, &at_home, &late, &late_nested, &late_innermost}) {
    server->finish();
  }
  tacho.finish();
}

TEST_CASE("a cgroup that a runtime has made inside tacho's own container is no container") {
  const Cgroup pod(playground() + "/" + unique_name());
  const Cgroup container(pod.path() + "/crio-" + std::string(64, 'a') + ".scope");
  const Cgroup own(container.path() + "/container");
  const Cgroup monitor(pod.path() + "/crio-conmon-" + std::string(64, 'b') + ".scope");
  const Cgroup app(pod.path() + "/app");
  Server server(app.directory());
  Sidecar tacho(own.directory(), SelfScope::pod, {app.path(), own.path(), container.path(), monitor.path()});
  server.ask(kRequests);
  CHECK(tacho.requests(0) == kRequests);
  CHECK(tacho.gone(1) == kNobody);
  CHECK(tacho.gone(2) == kNobody);
  CHECK(tacho.gone(3) == kNobody);
  server.finish();
  tacho.finish();
}

TEST_CASE("its own cgroup is one target, with all that is below it") {
  const Cgroup own(playground() + "/" + unique_name());
  const Cgroup inner(own.path() + "/inner");
  const Cgroup beside(playground() + "/" + unique_name());
  Child tacho(own.directory(), [](Line& parent) {
    Running running(watching_self(SelfScope::cgroup));
    parent.tell();
    (void)parent.hear();
    running.wait_for([] { return true; });
    const Page page = running.page();
    parent.tell(page.count("tacho_requests_total", {}));
    parent.tell(static_cast<std::uint64_t>(page.value("tacho_requests_total", {{"target", "self"}})));
  });
  (void)tacho.hear();
  Server server(own.directory());
  Server nested(inner.directory());
  Server stranger(beside.directory());
  server.ask(kRequests);
  nested.ask(7);
  stranger.ask(5);
  for (Server* each : {&server, &nested, &stranger}) {
    each->finish();
  }
  tacho.tell();
  CHECK(tacho.hear() == 1);
  CHECK(tacho.hear() == kRequests + 7);
  tacho.finish();
}

TEST_CASE("where there is no pod and no own cgroup, it says so and does not start") {
  CHECK_THAT(refusal(Cgroup::mount(), SelfScope::cgroup), Catch::Contains("`self`") && Catch::Contains("root cgroup"));
  CHECK_THAT(refusal(Cgroup::mount(), SelfScope::pod), Catch::Contains("root cgroup"));
  CHECK_THAT(refusal(Cgroup::mount() + playground(), SelfScope::pod),
             Catch::Contains("no pod") && Catch::Contains(playground()));
  CHECK(refusal(Cgroup::mount() + playground(), SelfScope::cgroup).empty());
}
