#include "kernel/kernel_types.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

using tacho::kernel::has_symbol;

TEST_CASE("a function is among the kernel's symbols by its whole name, in the kernel or in a module") {
  const auto has = [](std::string_view name) {
    std::istringstream symbols("ffffffff81000000 T unix_dgram_recvmsg\n0000000000000000 t inet6_recvmsg\t[ipv6]\n");
    return has_symbol(name, symbols);
  };
  CHECK(has("unix_dgram_recvmsg"));
  CHECK(has("inet6_recvmsg"));
  CHECK_FALSE(has("__unix_dgram_recvmsg"));
  CHECK_FALSE(has("unix_dgram"));
  CHECK_FALSE(has("[ipv6]"));
}

TEST_CASE("where symbols cannot be read any function may exist") {
  std::istringstream empty;
  CHECK(has_symbol("inet_recvmsg", empty));
  std::ifstream absent("/nonexistent/kallsyms");
  CHECK(has_symbol("inet_recvmsg", absent));
}
