#include "targets/cgroup_tree.h"

#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>
#include <map>
#include <string>

#include "no_descriptors.h"
#include "temp_tree.h"

namespace targets = tacho::targets;

namespace {

/// Where find_cgroup_mount() sees the hierarchy in a mountinfo file of this text.
tacho::Result<std::string> found_in(const std::string& text) {
  const TempTree tree;
  return targets::find_cgroup_mount(tree.file("mountinfo", text));
}

constexpr const char* kUnified =
    "22 27 0:21 / /proc rw,nosuid,nodev,noexec,relatime shared:12 - proc proc rw\n"
    "28 27 0:24 / /sys rw,nosuid,nodev,noexec,relatime shared:2 - sysfs sysfs rw\n"
    "31 28 0:27 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
    "35 28 0:30 / /sys/fs/bpf rw,nosuid,nodev,noexec,relatime shared:9 - bpf none rw,mode=700\n";

constexpr const char* kHybrid =
    "30 28 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec shared:3 - tmpfs tmpfs rw,mode=755\n"
    "31 30 0:27 / /sys/fs/cgroup/unified rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw\n"
    "32 30 0:28 / /sys/fs/cgroup/systemd rw,relatime shared:5 - cgroup cgroup rw,xattr,name=systemd\n"
    "33 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:6 - cgroup cgroup rw,cpu,cpuacct\n";

constexpr const char* kLegacy =
    "30 28 0:26 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:3 - tmpfs tmpfs ro,mode=755\n"
    "32 30 0:28 / /sys/fs/cgroup/systemd rw,relatime shared:5 - cgroup cgroup rw,xattr,name=systemd\n";

}  // namespace

TEST_CASE("the v2 mount is found on unified and on hybrid hosts") {
  CHECK(found_in(kUnified).value() == "/sys/fs/cgroup");
  CHECK(found_in(kHybrid).value() == "/sys/fs/cgroup/unified");
}

TEST_CASE("a mount without optional fields is understood (proc(5): zero or more)") {
  CHECK(found_in("31 28 0:27 / /cg rw - cgroup2 none rw\n").value() == "/cg");
  CHECK(found_in("31 28 0:27 / /cg rw shared:1 master:2 propagate_from:3 - cgroup2 none rw").value() == "/cg");
}

TEST_CASE("escaped characters of a mount point are read back") {
  CHECK(found_in("31 28 0:27 / /mnt/my\\040groups\\011x\\134y rw - cgroup2 none rw\n").value() ==
        "/mnt/my groups\tx\\y");
}

TEST_CASE("the mount of the whole hierarchy comes before that of a part, which is better than none") {
  const std::string part = "40 28 0:27 /docker/abc /part rw - cgroup2 cgroup2 rw\n";
  CHECK(found_in(part + kUnified).value() == "/sys/fs/cgroup");
  CHECK(found_in(kUnified + part).value() == "/sys/fs/cgroup");
  CHECK(found_in(part).value() == "/part");
}

TEST_CASE("without a v2 mount the error says what was read and what to do") {
  for (const char* text : {kLegacy, "", "garbage\n", "31 28 0:27 / /x rw - cgroup2\n"}) {
    CAPTURE(text);
    const auto found = found_in(text);
    REQUIRE_FALSE(found);
    CHECK(found.error().code == ENOENT);
    CHECK(found.error().message.find("mountinfo") != std::string::npos);
    CHECK(found.error().message.find("mount -t cgroup2") != std::string::npos);
    CHECK(found.error().message.find("--path.cgroupfs") != std::string::npos);
  }
}

TEST_CASE("where there is no procfs, the error says so and not that a hierarchy is missing") {
  const auto found = targets::find_cgroup_mount("/nonexistent/self/mountinfo");
  REQUIRE_FALSE(found);
  CHECK(found.error().message.contains("/nonexistent/self/mountinfo"));
  CHECK(found.error().message.contains("--path.procfs"));
  CHECK(found.error().message.contains("No such file"));
  CHECK_FALSE(found.error().message.contains("mount -t cgroup2"));
}

TEST_CASE("a controller's own hierarchy is found by its option, whatever the mount is called") {
  const TempTree tree;
  const std::string hybrid = tree.file("hybrid", kHybrid);
  CHECK(targets::find_controller_mount(hybrid, "cpu") == "/sys/fs/cgroup/cpu,cpuacct");
  CHECK(targets::find_controller_mount(hybrid, "cpuset").empty());
  CHECK(targets::find_controller_mount(tree.file("v2", kUnified), "cpu").empty());
  const std::string part = tree.file("part", "33 30 0:29 /docker/abc /cpu rw - cgroup cgroup rw,cpu\n");
  CHECK(targets::find_controller_mount(part, "cpu").empty());
}

TEST_CASE("a device that is called cgroup2 is not the file system") {
  CHECK_FALSE(found_in("31 28 0:27 / /x rw - ext4 cgroup2 rw\n"));
}

TEST_CASE("a cgroup's id is its directory's inode number, and one that is gone is an error with its path") {
  const TempTree tree;
  const auto id = tree.directory("a/b");
  CHECK(targets::cgroup_id(tree.path(), "/a/b").value() == id);
  const auto gone = targets::cgroup_id(tree.path(), "/a/c");
  REQUIRE_FALSE(gone);
  CHECK(gone.error().code == ENOENT);
  CHECK(gone.error().message.find(tree.path() + "/a/c") != std::string::npos);
}

TEST_CASE("a walk finds every directory by its path below the mount, and nothing else") {
  const TempTree tree;
  std::map<std::string, std::uint64_t> expected;
  expected["/"] = tree.directory(".");
  for (const char* path : {"/a", "/a/b", "/a/b/c", "/system.slice", "/system.slice/with space.service", "/\xff"}) {
    expected[path] = tree.directory(std::string(path).substr(1));
  }
  CHECK_FALSE(tree.file("a/cgroup.procs", "1\n").empty());
  tree.link("a/loop", tree.path());
  CHECK(targets::walk_cgroups(tree.path()).value().found == expected);
}

TEST_CASE("a cgroup that lets nobody in hides what is below it, and nothing else") {
  const TempTree tree;
  for (const char* path : {"a/b", "c"}) {
    CHECK(tree.directory(path) != 0);
  }
  namespace fs = std::filesystem;
  fs::permissions(tree.path(), fs::perms::all);
  fs::permissions(tree.path() + "/a", fs::perms::none);
  // As another user root has no right to override permissions (capabilities(7)).
  const int before = ::setfsuid(65534);
  const auto walk = targets::walk_cgroups(tree.path());
  ::setfsuid(static_cast<uid_t>(before));
  INFO((walk ? "" : walk.error().message));
  REQUIRE(walk);
  CHECK(walk->found.contains("/a"));
  CHECK(walk->found.contains("/c"));
  CHECK_FALSE(walk->found.contains("/a/b"));
  REQUIRE(walk->refused.size() == 1);
  CHECK(walk->refused.at("/a").message.ends_with("/a: Permission denied"));
  fs::permissions(tree.path() + "/a", fs::perms::owner_all);
}

TEST_CASE("cgroups that are nested too deeply for a path end no walk") {
  const TempTree tree;
  CHECK(tree.directory("c") != 0);
  const std::string name(200, 'd');
  int at = ::open(tree.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (int depth = 0; depth < 25; ++depth) {
    REQUIRE(::mkdirat(at, name.c_str(), 0755) == 0);
    const int below = ::openat(at, name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    ::close(at);
    at = below;
  }
  ::close(at);
  const auto walk = targets::walk_cgroups(tree.path());
  REQUIRE(walk);
  CHECK(walk->found.contains("/c"));
  CHECK(walk->found.size() > 15);
  REQUIRE(walk->refused.size() == 1);
  CHECK(walk->refused.begin()->second.code == ENAMETOOLONG);
}

TEST_CASE("a walk of what is not there is an error that names it") {
  const auto nothing = targets::walk_cgroups("/nonexistent");
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error().message == "cgroup /nonexistent/: No such file or directory");
}

TEST_CASE("cgroups that cannot be read for want of descriptors are an error, and taken for inhabited") {
  const TempTree tree;
  CHECK(tree.directory("a") != 0);
  CHECK_FALSE(tree.file("a/cgroup.events", "populated 0\nfrozen 0\n").empty());
  CHECK_FALSE(targets::is_inhabited(tree.path(), "/a"));
  const auto all = targets::test::without_descriptors([&] { return targets::walk_cgroups(tree.path()); });
  REQUIRE_FALSE(all);
  CHECK(all.error().code == EMFILE);
  CHECK(targets::test::without_descriptors([&] { return targets::is_inhabited(tree.path(), "/a"); }));
}

TEST_CASE("a cgroup is inhabited while a process is in it or below it") {
  const TempTree tree;
  for (const char* path : {"v2", "v1", "v1/below", "empty", "empty/below"}) {
    CHECK(tree.directory(path) != 0);
    CHECK_FALSE(tree.file(std::string(path) + "/cgroup.procs", path == std::string("v1/below") ? "42\n" : "").empty());
  }
  CHECK_FALSE(tree.file("v2/cgroup.events", "populated 1\nfrozen 0\n").empty());
  CHECK(targets::is_inhabited(tree.path(), "/v2"));
  CHECK(targets::is_inhabited(tree.path(), "/v1"));
  CHECK_FALSE(targets::is_inhabited(tree.path(), "/empty"));
  CHECK_FALSE(targets::is_inhabited(tree.path(), "/gone"));
}

TEST_CASE("what is no mount of cgroups is refused, with the option that names one") {
  for (const char* directory : {"/nonexistent", "/etc/passwd", "/tmp"}) {
    CAPTURE(directory);
    const auto mounted = targets::check_cgroup_mount(directory);
    REQUIRE_FALSE(mounted);
    CHECK(mounted.error().message.find(directory) != std::string::npos);
    CHECK(mounted.error().message.find("--path.cgroupfs") != std::string::npos);
  }
}
