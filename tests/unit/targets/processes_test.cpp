#include "targets/processes.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "no_descriptors.h"
#include "temp_tree.h"

namespace targets = tacho::targets;

namespace {

/// Adds /proc/PID/stat in the form of proc(5) up to the parent and a little beyond.
void add_process(const TempTree& procfs, std::uint32_t pid, const std::string& command, std::uint32_t parent) {
  CHECK_FALSE(procfs
                  .file(std::to_string(pid) + "/stat", std::to_string(pid) + " (" + command + ") S " +
                                                           std::to_string(parent) + " 1 1 0 -1 4194560 1\n")
                  .empty());
}

}  // namespace

TEST_CASE("a process is read with its parent and executable") {
  const TempTree procfs;
  add_process(procfs, 42, "nginx", 7);
  procfs.link("42/exe", "/usr/sbin/nginx");
  const auto process = targets::read_process(procfs.path(), 42).value();
  REQUIRE(process);
  CHECK(process->tgid == 42);
  CHECK(process->parent == 7);
  CHECK(process->executable == "/usr/sbin/nginx");
}

TEST_CASE("a command may contain what looks like the fields after it") {
  for (const char* command : {"a) S 99 (b", "(sd-pam)", "two\nlines", ")", "with space", "", "x) R 1 1"}) {
    CAPTURE(command);
    const TempTree procfs;
    add_process(procfs, 42, command, 7);
    const auto process = targets::read_process(procfs.path(), 42).value();
    REQUIRE(process);
    CHECK(process->parent == 7);
    CHECK(process->executable == "[" + std::string(command) + "]");
  }
}

TEST_CASE("a deleted executable is known by the name it had") {
  const TempTree procfs;
  add_process(procfs, 42, "server", 1);
  procfs.link("42/exe", "/opt/server (deleted)");
  CHECK(targets::read_process(procfs.path(), 42).value()->executable == "/opt/server");
}

TEST_CASE("an executable that is there may be called anything") {
  const TempTree procfs;
  add_process(procfs, 42, "line\nfeed) R 9", 1);
  const std::string file = procfs.file("x (deleted)", "");
  procfs.link("42/exe", file);
  CHECK(targets::read_process(procfs.path(), 42).value()->executable == file);
  CHECK(targets::read_process(procfs.path(), 42).value()->parent == 1);
}

TEST_CASE("a process whose executable cannot be read goes by its name, and by all of it where that was cut") {
  const TempTree procfs;
  add_process(procfs, 42, "kube-controller", 1);
  const auto called = [&procfs](const std::string& line) {
    CHECK_FALSE(procfs.file("42/cmdline", line).empty());
    return targets::read_process(procfs.path(), 42).value()->executable;
  };
  CHECK(called({"/usr/bin/kube-controller-manager\0--leader-elect", 46}) == "[kube-controller-manager]");
  CHECK(called("kube-controller-manager") == "[kube-controller-manager]");
  CHECK(called("kube-controller: a title of its own") == "[kube-controller]");
  CHECK(called("something else") == "[kube-controller]");
  CHECK(called("") == "[kube-controller]");
}

namespace {

process_record record(std::uint32_t tgid, const std::string& name, bool whole_path, bool deleted) {
  process_record one{};
  one.tgid = tgid;
  one.parent = 1;
  one.user = 1000;
  one.whole_path = static_cast<__u8>(whole_path);
  one.deleted = static_cast<__u8>(deleted);
  one.length = static_cast<__u32>(name.copy(one.name, sizeof(one.name) - 1) + 1);
  return one;
}

}  // namespace

TEST_CASE("what the kernel tells of processes needs no right to look into them") {
  const TempTree procfs;
  procfs.link("4/exe", "/opt/there");
  const std::vector records{record(1, "/usr/sbin/nginx", true, false), record(2, "/opt/x (deleted)", true, true),
                            record(3, "/opt/x (deleted)", true, false), record(4, "there", false, false),
                            record(5, "kube-controller-manager", false, false)};
  const auto all = targets::processes_of(records, procfs.path());
  REQUIRE(all.size() == 5);
  CHECK(all.at(1).executable == "/usr/sbin/nginx");
  CHECK(all.at(1).user == 1000);
  CHECK(all.at(1).parent == 1);
  CHECK(all.at(2).executable == "/opt/x");
  CHECK(all.at(3).executable == "/opt/x (deleted)");
  CHECK(all.at(4).executable == "/opt/there");
  CHECK(all.at(5).executable == "[kube-controller-manager]");
}

TEST_CASE("a process that is gone, or whose stat makes no sense, is none") {
  const TempTree procfs;
  CHECK_FALSE(targets::read_process(procfs.path(), 42).value());
  for (const char* stat : {"", "42", "42 (cut", "42 (cut)", "42 (cut) S", "42 cut) S 1"}) {
    CAPTURE(stat);
    CHECK_FALSE(procfs.file("42/stat", stat).empty());
    CHECK_FALSE(targets::read_process(procfs.path(), 42).value());
  }
}

TEST_CASE("a scan takes the directories that are process numbers") {
  const TempTree procfs;
  add_process(procfs, 1, "init", 0);
  add_process(procfs, 4'194'304, "server", 1);
  for (const char* other : {"self", "12a", "-3", "sys", "99999999999999999999", "7"}) {
    CHECK(procfs.directory(other) != 0);  // 7 is a process that has just gone: no stat
  }
  CHECK_FALSE(procfs.file("uptime", "1 1\n").empty());
  const auto all = targets::scan_processes(procfs.path()).value();
  REQUIRE(all.size() == 2);
  CHECK(all.at(1).parent == 0);
  CHECK(all.at(4'194'304).executable == "[server]");
}

TEST_CASE("a scan of what is not there finds nothing") {
  const auto nothing = targets::scan_processes("/nonexistent");
  REQUIRE_FALSE(nothing);
  CHECK(nothing.error().message == "processes in /nonexistent: No such file or directory");
}

TEST_CASE("this process is found in the machine's own /proc") {
  const auto self = targets::read_process("/proc", static_cast<std::uint32_t>(::getpid())).value();
  REQUIRE(self);
  CHECK(self->parent == static_cast<std::uint32_t>(::getppid()));
  CHECK(self->executable == std::filesystem::read_symlink("/proc/self/exe").string());
}

TEST_CASE("processes that cannot be read for want of descriptors are an error, not gone") {
  const TempTree procfs;
  add_process(procfs, 42, "server", 1);
  const auto one = targets::test::without_descriptors([&] { return targets::read_process(procfs.path(), 42); });
  REQUIRE_FALSE(one);
  CHECK(one.error().code == EMFILE);
  const auto all = targets::test::without_descriptors([&] { return targets::scan_processes(procfs.path()); });
  REQUIRE_FALSE(all);
  CHECK(all.error().code == EMFILE);
}
