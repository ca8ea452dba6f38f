# How what users run resists who finds a flaw in it. tacho_harden() is for every target of a folder and those below,
# civetweb's too; tests/unit/hardening reads it from the program. Builds without optimization, or with sanitizers, which
# bring checks of their own, are not hardened.
#
#   stack protector, FORTIFY   a buffer that overflows ends the program
#   stack clash                a large frame touches each of its pages, so that it cannot leap over the guard page
#   CET, branch protection     jumps and returns go where they may go, where processor, kernel and libraries watch that
#   PIE, BIND_NOW, RELRO       addresses are not known beforehand, and the table of them is read-only
string(TOUPPER "${CMAKE_BUILD_TYPE}" configuration)
set(TACHO_HARDENED ON)
foreach(language C CXX)
  if(NOT "${CMAKE_${language}_FLAGS} ${CMAKE_${language}_FLAGS_${configuration}}" MATCHES "-O[123s]")
    set(TACHO_HARDENED OFF)
  endif()
endforeach()
if(TACHO_SANITIZE)
  set(TACHO_HARDENED OFF)
endif()

macro(tacho_harden)
  # GCC before 12 and clang before 9 know no third level.
  set(fortify 3)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
    set(fortify 2)
  endif()
  add_compile_options(-fstack-protector-strong -fstack-clash-protection -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${fortify} -fPIE)
  add_link_options(-pie -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    add_compile_options(-mbranch-protection=standard)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    # Debian 12's start-up files bear no mark. They need none for shadow stacks; for the other half of CET (IBT) they would,
    # so the program has its landing pads and is not marked for it: no Linux watches them in user space yet.
    add_compile_options(-fcf-protection=full)
    add_link_options(-Wl,-z,shstk)
  endif()
endmacro()
